"""`explore models`: the models that come with the project."""

import typer


def models_command() -> None:
    """List the built-in models and their aliases."""
    from configs.model_config import ALIASES, built_in_models

    for name in built_in_models():
        aliases = [alias for alias, target in ALIASES.items() if target == name]
        typer.echo(f"{name}{'  (' + ', '.join(aliases) + ')' if aliases else ''}")
