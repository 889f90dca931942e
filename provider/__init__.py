"""Entry point of the credentials form."""
