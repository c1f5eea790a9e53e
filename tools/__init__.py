"""The command lines: `hublet`, `hub-restore`, and what the repository itself needs."""
