"""The memory engine. It knows neither Dify nor HTTP; see design notes in the modules, engine.py first."""
