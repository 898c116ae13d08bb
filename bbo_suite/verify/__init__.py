"""Does a study say what is true? Logs checked, strategies asked again, best candidates measured again."""
