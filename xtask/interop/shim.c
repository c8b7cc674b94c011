/* llama_model_quantize asks for a CPU backend only to learn whether the machine has memory in several places,
   and does without one. So none is compiled. */

#include "ggml-backend.h"

ggml_backend_dev_t ggml_backend_dev_by_type(enum ggml_backend_dev_type type) {
    (void) type;
    return NULL;
}
