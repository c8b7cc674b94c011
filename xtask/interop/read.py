"""read.py FILE...: what PyPI's gguf sees in each, as JSON: file -> name -> [type, ne]."""

import json
import sys

import gguf

seen = {}
for path in sys.argv[1:]:
    try:
        reader = gguf.GGUFReader(path)
        tensors = {t.name: [int(t.tensor_type), [int(d) for d in t.shape]] for t in reader.tensors}
        seen[path] = {"tensors": tensors, "architecture": reader.get_field("general.architecture").contents()}
    except ValueError as error:
        seen[path] = {"error": str(error)}
print(json.dumps(seen))
