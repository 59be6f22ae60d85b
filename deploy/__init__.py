"""How the pieces run together: the command line, the brokers and the one-machine stack."""
