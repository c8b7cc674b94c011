// What bounds a product on this CPU: the rate of the multiplications that AVX2 has for bytes, from
// registers alone, and the bandwidth of a plain read of memory.
//
//   limits MIB   prints GOP/s and GB/s, the best of some runs each
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double products(void) {
    enum { CHAINS = 12, ROUNDS = 2000000 };
    __m256i sums[CHAINS], a = _mm256_set1_epi8((char)rand()), ones = _mm256_set1_epi16(1);
    for (int i = 0; i < CHAINS; i++) sums[i] = _mm256_setzero_si256();
    double start = now();
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < CHAINS; i++) {
            __m256i words = _mm256_maddubs_epi16(a, sums[i]);
            sums[i] = _mm256_madd_epi16(words, ones);
        }
    }
    double seconds = now() - start;
    __m256i all = sums[0];
    for (int i = 1; i < CHAINS; i++) all = _mm256_add_epi32(all, sums[i]);
    volatile int kept = _mm256_extract_epi32(all, 0);
    (void)kept;
    return 64.0 * CHAINS * ROUNDS / seconds / 1e9;
}

static double bandwidth(const uint8_t *bytes, size_t len) {
    __m256i sums[4] = {0};
    double start = now();
    for (size_t i = 0; i + 128 <= len; i += 128)
        for (int j = 0; j < 4; j++)
            sums[j] = _mm256_xor_si256(sums[j], _mm256_loadu_si256((const __m256i *)(bytes + i + 32 * j)));
    double seconds = now() - start;
    __m256i all = _mm256_xor_si256(_mm256_xor_si256(sums[0], sums[1]), _mm256_xor_si256(sums[2], sums[3]));
    volatile int kept = _mm256_extract_epi32(all, 0);
    (void)kept;
    return (double)len / seconds / 1e9;
}

int main(int argc, char **argv) {
    size_t len = (size_t)(argc > 1 ? atoi(argv[1]) : 256) << 20;
    uint8_t *bytes = malloc(len);
    if (!bytes) return 1;
    memset(bytes, 1, len);
    double rate = 0, read = 0;
    for (int i = 0; i < 5; i++) {
        double r = products(), b = bandwidth(bytes, len);
        rate = r > rate ? r : rate;
        read = b > read ? b : read;
    }
    printf("%.1f %.1f\n", rate, read);
    return 0;
}
