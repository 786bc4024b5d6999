// The script of the report: see web/.
