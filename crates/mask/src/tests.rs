//! What must not be seen, and what may.

use super::*;

fn words(list: &[&str]) -> Vec<String> {
    let program = ["qemu-system-x86_64"].into_iter();
    let words = program.chain(list.iter().copied());
    words.map(str::to_owned).collect()
}

/// Masks words behind a program's name; masking again changes nothing.
fn masked(list: &[&str]) -> (Vec<String>, u64) {
    let (mut out, count) = args(&words(list));
    assert_eq!(args(&out), (out.clone(), 0), "masked again");
    out.remove(0);
    (out, count)
}

#[test]
fn secrets_on_command_lines_are_masked() {
    // Every secret has `hidden` in it; the second text is what is left.
    for (before, after) in [
        // QEMU's objects.
        (
            &["-object", "secret,id=sec0,data=hidden"][..],
            &["-object", "secret,id=sec0,data=***"][..],
        ),
        (
            &[
                "-object",
                "secret,id=s,format=base64,data=aGlkZGVuhidden==,keyid=master,iv=x",
            ],
            &[
                "-object",
                "secret,id=s,format=base64,data=***,keyid=master,iv=***",
            ],
        ),
        (
            &["-object", "secret,data=hidden,,hidden,id=s"],
            &["-object", "secret,data=***,id=s"],
        ),
        (
            &[
                "-object",
                r#"{"qom-type":"secret","id":"s","data":"hidden","keyid":"m","format":"base64"}"#,
            ],
            &[
                "-object",
                r#"{"qom-type":"secret","id":"s","data":"***","keyid":"m","format":"base64"}"#,
            ],
        ),
        // Serial numbers, and where a console is.
        (
            &[
                "-smbios",
                "type=1,manufacturer=x,serial=hidden",
                "-serial",
                "mon:stdio",
            ],
            &[
                "-smbios",
                "type=1,manufacturer=x,serial=***",
                "-serial",
                "mon:stdio",
            ],
        ),
        (
            &[
                "-device",
                "virtio-blk-pci,drive=d,serial=hidden",
                "--pin",
                "hidden",
            ],
            &[
                "-device",
                "virtio-blk-pci,drive=d,serial=***",
                "--pin",
                "***",
            ],
        ),
        (
            &["-device", "usb-ccid,pin=hidden,id=c"],
            &["-device", "usb-ccid,pin=***,id=c"],
        ),
        // What a shell is to do, and keys of AWS.
        (&["-c", "mysql -phidden"], &["-c", "***"]),
        (
            &["-netdev", "tap,id=n,script=sh -c 'mysql -phidden'"],
            &["-netdev", "tap,id=n,script=sh -c '***'"],
        ),
        (
            &["-fake", "AKIAHIDDENHIDDEN0000 aws_secret_access_key=hidden"],
            &["-fake", "*** aws_secret_access_key=***"],
        ),
        // Displays.
        (
            &["-spice", "port=5900,password=hidden"],
            &["-spice", "port=5900,password=***"],
        ),
        (
            &["-spice", "password=hidden,port=5900,addr=::1"],
            &["-spice", "password=***,port=5900,addr=::1"],
        ),
        (
            &["-vnc", ":0,password=hidden"],
            &["-vnc", ":0,password=***"],
        ),
        (
            &["-vnc", "0.0.0.0:1,PASSWORD=hidden,share=ignore"],
            &["-vnc", "0.0.0.0:1,PASSWORD=***,share=ignore"],
        ),
        // What the guest gets.
        (
            &[
                "-fw_cfg",
                "name=opt/com.coreos/config,string=hidden stuff,,hidden",
            ],
            &["-fw_cfg", "name=opt/com.coreos/config,string=***"],
        ),
        (
            &[
                "-smbios",
                "type=11,value=io.systemd.credential:login=hidden,value=x",
            ],
            &["-smbios", "type=11,value=io.systemd.credential:***,value=x"],
        ),
        (
            &[
                "-smbios",
                "type=11,value=io.systemd.credential.binary:vmm.notify=aGlkhidden=",
            ],
            &["-smbios", "type=11,value=io.systemd.credential.binary:***"],
        ),
        (
            &["-append", "root=/dev/vda ro password=hidden console=ttyS0"],
            &["-append", "root=/dev/vda ro password=*** console=ttyS0"],
        ),
        (
            &["--cmdline", "quiet DB_PASSWD=hidden,hidden x=1"],
            &["--cmdline", "quiet DB_PASSWD=*** x=1"],
        ),
        (
            &["--cmdline=quiet my.secret=hidden x=1"],
            &["--cmdline=quiet my.secret=*** x=1"],
        ),
        (
            &["-p", "init=/x api_key=hidden"],
            &["-p", "init=/x api_key=***"],
        ),
        // Disks.
        (
            &[
                "-drive",
                "file=rbd:pool/img:id=admin:key=AQhidden==:auth_supported=cephx\\;none,if=virtio",
            ],
            &[
                "-drive",
                "file=rbd:pool/img:id=admin:key=***:auth_supported=cephx\\;none,if=virtio",
            ],
        ),
        (
            &[
                "-drive",
                "file=iscsi://joe%hidden@10.0.0.1/iqn.x/1,format=raw",
            ],
            &["-drive", "file=iscsi://***@10.0.0.1/iqn.x/1,format=raw"],
        ),
        (
            &[
                "-drive",
                "file=https://joe:hid/den:@hidden@host/disk.qcow2,if=none",
            ],
            &["-drive", "file=https://***@host/disk.qcow2,if=none"],
        ),
        (
            &[
                "-drive",
                "file=https://hidden@host/disk?sig=hidden&x=1,if=none",
            ],
            &["-drive", "file=https://***@host/disk?sig=***&x=1,if=none"],
        ),
        (
            &["-iscsi", "initiator-name=iqn.x,user=joe,password=hidden"],
            &["-iscsi", "initiator-name=iqn.x,user=joe,password=***"],
        ),
        (
            &[
                "-blockdev",
                r#"{"driver":"https","url":"https://joe:hidden@h/x","cookie":"hidden","node-name":"n"}"#,
            ],
            &[
                "-blockdev",
                r#"{"driver":"https","url":"https://***@h/x","cookie":"***","node-name":"n"}"#,
            ],
        ),
        (
            &[
                "-drive",
                r#"file=json:{"driver":"ssh",,"password":"hidden,,hidden",,"host":"h"},if=none,password=hidden"#,
            ],
            &[
                "-drive",
                r#"file=json:{"driver":"ssh",,"password":"***",,"host":"h"},if=none,password=***"#,
            ],
        ),
        (
            &[
                "-blockdev",
                r#"{"file":{"filename":"json:{\"password\":\"hidden\"}"}}"#,
            ],
            &[
                "-blockdev",
                r#"{"file":{"filename":"json:{\"password\":\"***\"}"}}"#,
            ],
        ),
        (
            &[
                "-blockdev",
                r#"{"password":{"str":"hidden"},"key":["hidden"],"pass":4711}"#,
            ],
            &[
                "-blockdev",
                r#"{"password":"***","key":"***","pass":"***"}"#,
            ],
        ),
        // Cut off by whatever carried it here.
        (
            &["-blockdev", r#"{"driver":"ssh","password":"hidden"#],
            &["-blockdev", "***"],
        ),
        (
            &[
                "-netdev",
                "l2tpv3,id=n,src=::1,txcookie=0xhidden,rxcookie=0xhidden,counter",
            ],
            &[
                "-netdev",
                "l2tpv3,id=n,src=::1,txcookie=***,rxcookie=***,counter",
            ],
        ),
        // Options and their values apart.
        (
            &["--token", "hidden", "--cpus", "4"],
            &["--token", "***", "--cpus", "4"],
        ),
        (&["--token", "-hidden"], &["--token", "***"]),
        (&["--token", "--Hidden"], &["--token", "***"]),
        (&["-password", "port=hidden"], &["-password", "***"]),
        (&["--api-key=hidden,hidden=hidden"], &["--api-key=***"]),
        (&["--apiKey", "hidden"], &["--apiKey", "***"]),
        (&["--auth", "hidden"], &["--auth", "***"]),
        (&["--passphrase", "{hidden"], &["--passphrase", "***"]),
        (&["--user", "joe:hidden"], &["--user", "joe:***"]),
        (
            &["--opt", "user=joe:hidden,x=1"],
            &["--opt", "user=joe:***,x=1"],
        ),
        (
            &["--header", "Authorization: Basic hidden"],
            &["--header", "Authorization: ***"],
        ),
        (
            &["--header", "X-Auth-Token:hidden"],
            &["--header", "X-Auth-Token:***"],
        ),
        (
            &["-set", "drive.d0.password=hidden"],
            &["-set", "drive.d0.password=***"],
        ),
        (&["--opt", "a;pwd=hidden;b=1"], &["--opt", "a;pwd=***;b=1"]),
        (
            &["--opt", "x password='hidden hidden' y"],
            &["--opt", "x password='***' y"],
        ),
        (
            &["--opt", r#""secret" : "hidden \" hidden", "x""#],
            &["--opt", r#""secret" : "***", "x""#],
        ),
        (
            &["--opt", "a=b,password=\"hidden,hidden\",c=d"],
            &["--opt", "a=b,password=\"***\",c=d"],
        ),
        (
            &["--opt", "password=\"hidden\"hidden,c=d"],
            &["--opt", "password=***,c=d"],
        ),
        (
            &["--opt", "password = \"hidden, c=d"],
            &["--opt", "password = ***"],
        ),
        (&["--opt", "luks.key=hidden"], &["--opt", "luks.key=***"]),
        (&["--jwt=eyJhidden.hidden.hidden"], &["--jwt=***"]),
        (
            &["--x", "id eyJhidden.hidden.hid-den_ y"],
            &["--x", "id *** y"],
        ),
        (
            &["--x", "-----BEGIN PRIVATE KEY-----\nhidden"],
            &["--x", "***"],
        ),
        (
            &["--upload", "joe:hidden@host:/x"],
            &["--upload", "***@host:/x"],
        ),
    ] {
        let (found, count) = masked(before);
        assert_eq!(found, after, "{before:?}");
        let secrets = after.join(" ").matches(MASK).count() as u64;
        assert_eq!(count, secrets, "{before:?}");
        assert!(!found.join(" ").contains("hidden"), "{found:?}");
    }
}

#[test]
fn what_is_no_secret_stays() {
    for list in [
        &[
            "-name",
            "guest=web,debug-threads=on",
            "-uuid",
            "8d2f1c9e-0000-0000-0000-000000000001",
        ][..],
        &["-smbios", "type=1,manufacturer=Red Hat,uuid=8d2f1c9e-00"],
        &[
            "-drive",
            "file=/x.luks,key-secret=sec0,password-secret=sec1,file.password-secret=s",
        ],
        &[
            "-object",
            "tls-creds-x509,id=tls0,dir=/etc/pki,endpoint=server,passwordid=s",
        ],
        &["-object", "secret,id=sec0,file=/run/sec0,format=base64"],
        &[
            "-object",
            r#"{"qom-type":"secret","id":"masterKey0","format":"raw","file":"/var/lib/x/master.aes"}"#,
        ],
        &[
            "-blockdev",
            r#"{"driver":"luks", "key-secret":"s", "file":"n"}"#,
        ],
        &["-vnc", "127.0.0.1:0,password=on,tls-creds=tls0"],
        &["-vnc", "unix:/run/vnc.sock,password"],
        &["-k", "de", "-accel", "kvm,kernel-irqchip=on"],
        &[
            "-machine",
            "pc-q35-7.2,usb=off,mem-merge=off,kernel-irqchip=split",
        ],
        &["-cpu", "host,migratable=on,hv-time=on,hv-vpindex=on"],
        &[
            "-netdev",
            "tap,fds=30:31,id=hostnet0,vhost=on,vhostfds=32:33",
        ],
        &["-netdev", "user,id=n,hostfwd=tcp::2222-:22"],
        &[
            "-device",
            r#"{"driver":"virtio-net-pci","mq":true,"mac":"52:54:00:12:34:56","bus":"pci.1"}"#,
        ],
        &["-device", "vfio-pci,host=0000:03:00.0,id=hostdev0"],
        &["-serial", "udp::4555@:4556"],
        &[
            "-drive",
            "file=rbd:pool/img@snap:id=admin:conf=/etc/ceph.conf",
        ],
        &["-drive", "file=nbd://localhost/disk@1"],
        &[
            "-append",
            "root=/dev/vda1 ro console=ttyS0,115200 clocksource=hpet",
        ],
        &["-incoming", "tcp:[::]:49152", "-msg", "timestamp=on"],
        &["--no-auth", "--kernel", "/x"],
        &["--token", "--kernel", "/x"],
        &[
            "--seccomp",
            "true",
            "--id",
            "f1",
            "--api-sock",
            "/run/f1.sock",
        ],
        &["--password=", "-spice", "password=,port=1"],
    ] {
        assert_eq!(masked(list), (words(list)[1..].to_vec(), 0));
    }
    // Nor what the program is called.
    let program = words(&[])[0].replace("qemu", "password=x");
    assert_eq!(args(std::slice::from_ref(&program)), (vec![program], 0));
    assert_eq!(args(&[]), (Vec::new(), 0));
}

#[test]
fn kernel_command_lines_are_masked_word_by_word() {
    for (before, after) in [
        (
            "root=/dev/vda rd.luks.key=/hidden:UUID=x quiet",
            "root=/dev/vda rd.luks.key=*** quiet",
        ),
        ("cryptkey=hidden,x\troot=x", "cryptkey=***\troot=x"),
        (
            "rd.iscsi.password=hidden rd.iscsi.in.password=hidden",
            "rd.iscsi.password=*** rd.iscsi.in.password=***",
        ),
        (
            "netroot=iscsi:joe:hidden@10.0.0.1::3260::iqn",
            "netroot=***@10.0.0.1::3260::iqn",
        ),
        (
            "inst.ks=https://joe:hidden@h/ks.cfg ip=dhcp",
            "inst.ks=https://***@h/ks.cfg ip=dhcp",
        ),
        ("my_password=\"hidden hidden\" ro", "my_password=\"***\" ro"),
        ("\"my.password=hidden hidden\" ro", "\"my.password=***\" ro"),
        ("password=\"hidden\"hidden\"hidden", "password=***"),
        ("grub_password=\"hidden hidden", "grub_password=***"),
        (
            "systemd.setenv=API_TOKEN=hidden x",
            "systemd.setenv=API_TOKEN=*** x",
        ),
        (
            "systemd.set_credential=login:hidden x",
            "systemd.set_credential=*** x",
        ),
        (
            "-- --token hidden --port 1 --pw=hidden",
            "-- --token *** --port 1 --pw=***",
        ),
        (
            "dm-mod.create=\"c,,0,ro,0 9 crypt aes-xts-plain64 hidden 0 /dev/sda 0\" ro",
            "dm-mod.create=*** ro",
        ),
        ("PASSWORD=hidden,hidden;hidden&hidden:x y", "PASSWORD=*** y"),
    ] {
        let (found, count) = cmdline(before);
        assert_eq!(found, after);
        assert_eq!(count, after.matches(MASK).count() as u64, "{before}");
        assert_eq!(cmdline(&found), (found.clone(), 0), "masked again");
    }
    for text in [
        "",
        "  BOOT_IMAGE=/vmlinuz-6.1 root=UUID=ab-cd ro quiet  \n",
        "isolcpus=managed_irq,domain,2-15 nohz_full=2-15 rcu_nocbs=2-15 intel_iommu=on",
        "dyndbg=\"file drivers/x +p; func y +p\" default_hugepagesz=1G hugepages=16 mitigations=off",
        "dm-mod.create=\"v,,0,ro,0 9 verity 1 /dev/sda1 /dev/sda2 4096\"",
        "kvm.halt_poll_ns=0 clocksource=tsc tsc=reliable -- --auth-required --log debug",
    ] {
        assert_eq!(cmdline(text), (text.to_owned(), 0));
    }
}

proptest::proptest! {
    /// Whatever stands around it, a password behind its name is not seen, and masking twice is masking once.
    #[test]
    fn any_words(
        before in "[ -~]{0,12}",
        after in "[a-z0-9é,\\\\:;&=\"' ]{0,12}",
        words in proptest::collection::vec("\\PC{0,20}", 0..4),
    ) {
        let mut list = words;
        list.push(format!("{before},password=hidden,{after}"));
        list.push("--secret".to_owned());
        list.push("hidden".to_owned());
        list.insert(0, "qemu".to_owned());
        let (found, _) = args(&list);
        proptest::prop_assert!(!found.join(" ").contains("hidden"), "{found:?}");
        proptest::prop_assert_eq!(found.len(), list.len());
        let again = args(&found).0;
        proptest::prop_assert!(!again.join(" ").contains("hidden"));
        cmdline(&list.join(" "));
    }
}
