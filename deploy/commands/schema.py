"""`springback schema`: the JSON Schema of a step frame."""

import typer


def schema() -> None:
    """Print the JSON Schema of a step frame: what any client may send as JSON to the topic `steps`.

    Example: springback schema > step_frame.schema.json
    """
    import msgspec

    from springback.producers.contract.schema import frame_schema

    typer.echo(msgspec.json.format(msgspec.json.encode(frame_schema()), indent=2))
