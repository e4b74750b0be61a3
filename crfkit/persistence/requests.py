"""scikit-learn's metadata requests (``set_fit_request``) as plain dicts."""

from __future__ import annotations

from typing import Any

from sklearn.utils.metadata_routing import MetadataRequest

ATTRIBUTE = "_metadata_request"


def plain_requests(request: MetadataRequest) -> dict[str, dict[str, Any]]:
    """Return ``{method: {parameter: alias or flag}}``; the owner is left out."""
    methods = {name: part for name, part in vars(request).items() if name != "owner"}
    return {name: dict(part.requests) for name, part in methods.items() if part.requests}


def restored_requests(owner: Any, plain: dict[str, dict[str, Any]]) -> MetadataRequest:
    """Return the requests of an estimator."""
    request = MetadataRequest(owner=owner)
    for method, parameters in plain.items():
        for parameter, alias in parameters.items():
            getattr(request, method).add_request(param=parameter, alias=alias)
    return request
