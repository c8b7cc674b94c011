// node embed.mjs FILE...: loads each model in llama.cpp, embeds three sentences, and prints a line
// of JSON: the vectors.
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "Quantization trades a little accuracy for a much smaller file.",
    "Berlin liegt an der Spree."
];

const llama = await getLlama({
    gpu: false, build: "never", skipDownload: true, logLevel: LlamaLogLevel.error, maxThreads: 2
});
for (const modelPath of process.argv.slice(2)) {
    const model = await llama.loadModel({modelPath});
    const context = await model.createEmbeddingContext({contextSize: 256});
    const vectors = [];
    for (const sentence of SENTENCES)
        vectors.push((await context.getEmbeddingFor(sentence)).vector);
    console.log(JSON.stringify(vectors));
    await context.dispose();
    await model.dispose();
}
process.exit(0);
