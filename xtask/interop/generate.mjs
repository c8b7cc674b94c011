// node generate.mjs FILE...: loads each model in llama.cpp, continues a prompt greedily, and prints a
// line of JSON: the text. FILE+ADAPTER has llama.cpp apply a GGUF adapter at run time.
import {getLlama, LlamaCompletion, LlamaLogLevel} from "node-llama-cpp";

const llama = await getLlama({
    gpu: false, build: "never", skipDownload: true, logLevel: LlamaLogLevel.error, maxThreads: 1
});
for (const argument of process.argv.slice(2)) {
    const [modelPath, lora] = argument.split("+");
    const model = await llama.loadModel({modelPath});
    const context = await model.createContext({contextSize: 256, lora});
    const completion = new LlamaCompletion({contextSequence: context.getSequence()});
    const text = await completion.generateCompletion(
        "# The n-th Fibonacci number\ndef fibonacci(n):", {maxTokens: 32, temperature: 0}
    );
    console.log(JSON.stringify(text));
    await context.dispose();
    await model.dispose();
}
process.exit(0);
