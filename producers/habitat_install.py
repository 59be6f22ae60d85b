"""Habitat is imported only where it is needed, and says how to install it where it is missing."""

import importlib
from typing import Any

from springback.producers.errors import ProducerError

_HOW = {
    "habitat_sim": "conda install habitat-sim withbullet headless -c conda-forge -c aihabitat",
    "habitat": "pip install habitat-lab",
}


class MissingHabitatError(ProducerError, ImportError):
    """habitat-sim or habitat-lab is not installed.

    They are no extra of springback: habitat-sim does not come by pip, and the two ask for different versions of numpy.

    >>> str(MissingHabitatError("habitat", ImportError("No module named 'habitat'")))
    "habitat cannot be imported (No module named 'habitat'); install it with: pip install habitat-lab"
    """

    def __init__(self, module: str, cause: ImportError) -> None:
        super().__init__(f"{module} cannot be imported ({cause}); install it with: {_HOW[module]}", name=module)


def import_habitat(module: str) -> Any:
    """The module `habitat_sim` or `habitat`.

    Raises:
        MissingHabitatError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingHabitatError(module, error) from error
