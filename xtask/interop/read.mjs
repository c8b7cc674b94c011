// node read.mjs FILE...: what @huggingface/gguf sees in each, as JSON: file -> name -> [type, ne].
import {gguf} from "@huggingface/gguf";

const seen = {};
for (const file of process.argv.slice(2)) {
    try {
        const {tensorInfos, metadata} = await gguf(file, {allowLocalFile: true});
        seen[file] = {
            tensors: Object.fromEntries(tensorInfos.map((t) => [t.name, [t.dtype, t.shape.map(Number)]])),
            architecture: metadata["general.architecture"]
        };
    } catch (error) {
        seen[file] = {error: String(error)};
    }
}
console.log(JSON.stringify(seen));
