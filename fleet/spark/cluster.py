"""A standalone cluster of Spark on loopback, of PyPI's pyspark: a master, and workers that can be killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent
HERE = Path(__file__).resolve().parent
PORT = 17077


def version():
    """The version of Spark."""
    return pyspark.__version__


class Cluster:
    """A master and workers of one core each, until the end of 'with'. Their folders lie in `folder`."""

    def __init__(self, folder, workers, memory="1g", executor_memory="512m"):
        self.master = f"spark://127.0.0.1:{PORT}"
        self.executor_memory = executor_memory
        self.environment = dict(os.environ, SPARK_HOME=str(HOME), SPARK_LOCAL_IP="127.0.0.1",
                                SPARK_WORKER_DIR=str(folder / "work"), PYSPARK_PYTHON=sys.executable,
                                SPARK_NO_DAEMONIZE="1")
        self.workers = []
        self.head = self._daemon("master.Master", "--host", "127.0.0.1", "--port", str(PORT),
                                 "--webui-port", str(PORT + 3))
        try:
            time.sleep(5)
            for number in range(workers):
                self.workers.append(self._daemon("worker.Worker", "--host", "127.0.0.1", "-c", "1", "-m", memory,
                                                 "--webui-port", str(PORT + 4 + number), self.master))
        except BaseException:
            self.__exit__()
            raise

    def _daemon(self, name, *words):
        """Starts a part of the cluster in a session of its own, with which it is found and killed."""
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *words]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for part in [*self.workers, self.head]:
            kill(part)

    def submit(self, job, *words):
        """Starts a job of this folder on the cluster."""
        submit = [str(HOME / "bin" / "spark-submit"), "--master", self.master, "--conf", "spark.ui.enabled=false",
                  "--conf", f"spark.executor.memory={self.executor_memory}", "--conf", "spark.driver.host=127.0.0.1",
                  str(HERE / job), *map(str, words)]
        return subprocess.Popen(submit, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def members(part):
    """The processes of a part of the cluster: Python's workers and what these start belong to a worker's session."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                # The session is the fourth word behind the name in parentheses (proc_pid_stat(5)).
                if int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[3]) == part.pid:
                    found.append(int(entry))
            except OSError:
                pass
    return found


def resident_bytes(part):
    """What a part of the cluster has in memory, pages that its processes share counted once (proc_pid_smaps_rollup)."""
    total = 0
    for process in members(part):
        try:
            for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) << 10
        except OSError:
            pass
    return total


def kill(part):
    """Kills a part of the cluster with all that runs in it: as a machine that loses its power."""
    for process in members(part):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    part.wait()
