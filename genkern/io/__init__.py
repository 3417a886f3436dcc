"""Files become sets of objects, and back: formats and kinds of data are detected, and what was seen is said."""

from genkern.io.dataset import Dataset
from genkern.io.errors import ReadError
from genkern.io.read import read, stream
from genkern.io.transform import Features, transform_stream, write_features
from genkern.io.write import write

__all__ = ["Dataset", "Features", "ReadError", "read", "stream", "transform_stream", "write", "write_features"]
