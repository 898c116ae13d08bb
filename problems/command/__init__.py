"""Any build that is a command line: what it makes is run, checked and measured beside what the default makes."""
