"""All that knows Dify: its forms, parameters, models and messages."""
