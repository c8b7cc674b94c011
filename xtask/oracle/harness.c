// A process around ggml's codecs. It reads requests on standard input and answers on standard
// output, all numbers little endian as the machine has them.
//
// request:  u32 operation, u32 type, u64 rows, u64 row length, u32 importance (0 or 1), u32 zero
//   'q' quantize:   rows * row length f32, then row length f32 of importance if there is one
//   'd' dequantize: the rows' bytes
//   't' time:       nothing; does the last 'q' or 'd' once more
// answer:   u32 status, u32 zero, u64 bytes, then that many bytes
//   status 0: the result ('t': u64 nanoseconds); 1: ggml aborted, the bytes are its message
//
// A few functions of ggml's C++ files stand at the end, so that a C compiler is enough.

#include "ggml.h"
#include "ggml-quants.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct request {
    uint32_t operation, type;
    uint64_t rows, row_len;
    uint32_t importance, zero;
};

struct answer {
    uint32_t status, zero;
    uint64_t bytes;
};

static jmp_buf on_abort;
static char    message[2048];

static void aborted(const char * text) {
    snprintf(message, sizeof(message), "%s", text);
    longjmp(on_abort, 1);
}

static int take(void * to, size_t bytes) {
    return bytes == 0 || fread(to, 1, bytes, stdin) == bytes;
}

static void * buffer(size_t bytes) {
    void * p = calloc(bytes + 64, 1);
    if (p == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(3);
    }
    return p;
}

static void reply(FILE * out, uint32_t status, const void * from, uint64_t bytes) {
    struct answer a = { status, 0, bytes };
    fwrite(&a, sizeof(a), 1, out);
    fwrite(from, 1, bytes, out);
    fflush(out);
}

static void quantize(const struct request * r, const float * values, const float * importance, void * to) {
    const int64_t n = (int64_t) (r->rows * r->row_len);
    switch (r->type) {
        case GGML_TYPE_Q8_1: quantize_row_q8_1_ref(values, to, n); break;
        case GGML_TYPE_Q8_K: quantize_row_q8_K_ref(values, to, n); break;
        default:
            ggml_quantize_chunk(r->type, values, to, 0, (int64_t) r->rows, (int64_t) r->row_len, importance);
    }
}

// Types without a decoder in ggml's table: Q8_K has a function, Q8_1 is d times q.
static void dequantize(const struct request * r, const void * from, float * to) {
    const int64_t n = (int64_t) (r->rows * r->row_len);
    if (r->type == GGML_TYPE_Q8_K) {
        dequantize_row_q8_K(from, to, n);
    } else if (r->type == GGML_TYPE_Q8_1) {
        const block_q8_1 * blocks = from;
        for (int64_t i = 0; i < n; i++) {
            const block_q8_1 * b = blocks + i / QK8_1;
            to[i] = ggml_fp16_to_fp32(b->d) * b->qs[i % QK8_1];
        }
    } else {
        ggml_get_type_traits(r->type)->to_float(from, to, n);
    }
}

int main(void) {
    // ggml prints to standard output when a search fails: answers go to a stream of their own.
    FILE * out = fdopen(dup(1), "wb");
    if (out == NULL || dup2(2, 1) < 0) {
        return 3;
    }
    ggml_set_abort_callback(aborted);

    static struct request r, last;
    static float * values, * importance;
    static void  * bytes;
    static size_t  size;
    while (take(&r, sizeof(r))) {
        if (r.operation != 't') {
            last = r;
            free(values);
            free(importance);
            free(bytes);
            size       = ggml_row_size(r.type, (int64_t) r.row_len) * r.rows;
            values     = buffer(r.rows * r.row_len * sizeof(float));
            importance = buffer(r.row_len * sizeof(float));
            bytes      = buffer(size);
            const int encode = r.operation == 'q';
            if (!take(encode ? (void *) values : bytes, encode ? r.rows * r.row_len * sizeof(float) : size) ||
                !take(importance, r.importance ? r.row_len * sizeof(float) : 0)) {
                return 4;
            }
        }
        if (setjmp(on_abort)) {
            reply(out, 1, message, strlen(message));
            continue;
        }
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        if (last.operation == 'q') {
            quantize(&last, values, last.importance ? importance : NULL, bytes);
        } else {
            dequantize(&last, bytes, values);
        }
        clock_gettime(CLOCK_MONOTONIC, &b);
        if (r.operation == 't') {
            uint64_t ns = (uint64_t) (b.tv_sec - a.tv_sec) * 1000000000u + (uint64_t) b.tv_nsec - (uint64_t) a.tv_nsec;
            reply(out, 0, &ns, sizeof(ns));
        } else if (r.operation == 'q') {
            reply(out, 0, bytes, size);
        } else {
            reply(out, 0, values, r.rows * r.row_len * sizeof(float));
        }
    }
    return 0;
}

// One thread: no lock is needed.
void ggml_critical_section_start(void);
void ggml_critical_section_end(void);
void ggml_critical_section_start(void) {}
void ggml_critical_section_end(void) {}
