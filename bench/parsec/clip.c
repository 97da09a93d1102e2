/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * clip WIDTH HEIGHT FRAMES: a YUV4MPEG2 video clip on stdout, the same for the same arguments. A gradient that drifts,
 * discs that move before it and a little noise: enough motion and detail that an encoder's threads have work.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_DISCS 12

static uint32_t noise_state = 1;

/* Low bits of a linear congruential generator are poor; the callers take high ones. */
static uint32_t noise(void) {
    return noise_state = noise_state * 1664525u + 1013904223u;
}

static void clamp_add(uint8_t *sample, int by) {
    int value = *sample + by;
    *sample = (uint8_t)(value < 16 ? 16 : value > 235 ? 235 : value);
}

static void draw_luma(uint8_t *luma, int width, int height, int frame) {
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            luma[y * width + x] = (uint8_t)(60 + (x + 2 * frame + (y - frame) / 2) % 128);
    for (int d = 0; d < N_DISCS; d++) {
        int radius = height / (6 + d), speed = 2 + d % 5;
        int cx = (d * 97 + frame * speed) % width, cy = (d * 61 + frame * (speed - 1)) % height;
        for (int y = cy > radius ? cy - radius : 0; y < height && y <= cy + radius; y++)
            for (int x = cx > radius ? cx - radius : 0; x < width && x <= cx + radius; x++)
                if ((x - cx) * (x - cx) + (y - cy) * (y - cy) <= radius * radius)
                    luma[y * width + x] = (uint8_t)(40 + 15 * d + ((x ^ y) & 8));
    }
    for (int i = 0; i < width * height; i++)
        clamp_add(&luma[i], (int)(noise() >> 29) - 4);
}

static void draw_chroma(uint8_t *chroma, int width, int height, int frame, int phase) {
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            chroma[y * width + x] = (uint8_t)(64 + (x * (1 + phase) + y + frame) / 2 % 128);
}

static int parse(const char *text) {
    char *end;
    long value = strtol(text, &end, 10);
    if (*end != '\0' || value < 2 || value > 8192 || value % 2 != 0) {
        fprintf(stderr, "clip: illegal number '%s' (legal: even numbers, 2 to 8192)\n", text);
        exit(2);
    }
    return (int)value;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fputs("usage: clip WIDTH HEIGHT FRAMES >FILE.y4m\n", stderr);
        return 2;
    }
    int width = parse(argv[1]), height = parse(argv[2]), frames = parse(argv[3]);
    size_t n_luma = (size_t)width * (size_t)height, n_chroma = n_luma / 4;
    uint8_t *picture = malloc(n_luma + 2 * n_chroma);
    if (picture == NULL) {
        fputs("clip: out of memory\n", stderr);
        return 1;
    }
    printf("YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C420jpeg\n", width, height);
    for (int frame = 0; frame < frames; frame++) {
        draw_luma(picture, width, height, frame);
        draw_chroma(picture + n_luma, width / 2, height / 2, frame, 0);
        draw_chroma(picture + n_luma + n_chroma, width / 2, height / 2, frame, 1);
        puts("FRAME");
        fwrite(picture, 1, n_luma + 2 * n_chroma, stdout);
    }
    free(picture);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("clip");
        return 1;
    }
    return 0;
}
