/* What the neutral server says, in bytes. */
#ifndef ANSWER_H
#define ANSWER_H

#include <stddef.h>
#include <stdint.h>

enum kind { SAGEMAKER, CHAT, COMPLETION, KINDS };
enum { MAX_TOKEN_BYTES = 2048 };

/* Writes the texts that don't change; to be called once, before the others. */
void prepare_tokens(void);

/* Tells what a path asks for; 0 when it is none of ours. */
int kind_of_path(const char *path, enum kind *kind);

const char *answer_head(enum kind kind);

/* Writes one token, chunk and all, with the two times in it; returns its size. */
size_t token_text(char *text, enum kind kind, int is_last, uint64_t asked_ns, uint64_t written_ns);

/* Writes what follows the last token; returns its size. */
size_t answer_end(char *text, enum kind kind, int tells_usage, int tokens);

#endif
