"""HLO text read into plain data, and what each opcode means."""
