/* Tokens are written once, with room for the two times, and only patched later: the server must cost little.
 *
 * An event stream's frame (AWS Smithy, "Amazon Event Stream"): total length, length of the headers, CRC-32 of these
 * eight bytes, headers, payload, CRC-32 of everything before; all big-endian.
 */
#define _GNU_SOURCE
#include "answer.h"

#include <stdio.h>
#include <string.h>

enum { PRELUDE = 12, CRC = 4, DIGITS = 19 };

static const char EVENT_HEADERS[] =
    "\x0b:event-type\x07\x00\x0bPayloadPart"
    "\x0d:content-type\x07\x00\x18" "application/octet-stream"
    "\x0d:message-type\x07\x00\x05" "event";

static struct token {
    char text[MAX_TOKEN_BYTES];
    size_t size, asked_at, written_at, frame_at, frame_size;
} tokens[KINDS][2];

static uint32_t crc_table[256];

static uint32_t crc32_of(const char *data, size_t size) {
    uint32_t crc = 0xffffffffu;
    while (size--) crc = crc_table[(crc ^ (unsigned char)*data++) & 0xff] ^ (crc >> 8);
    return ~crc;
}

static void put_be32(char *at, uint32_t value) {
    for (int i = 0; i < 4; i++) at[i] = (char)(value >> (24 - 8 * i));
}

/* Right-aligned with spaces before it: JSON forbids leading zeros. */
static void put_number(char *at, uint64_t value) {
    int i = DIGITS;
    do at[--i] = (char)('0' + value % 10);
    while (value /= 10);
    while (i) at[--i] = ' ';
}

static int document(char *text, enum kind kind, int is_last) {
    const char *reason = is_last ? "\"length\"" : "null";
    if (kind == COMPLETION)
        return sprintf(text,
                       "data: {\"id\":\"cmpl-1\",\"object\":\"text_completion\",\"created\":1,\"model\":\"m\","
                       "\"r\":%*s,\"t\":%*s,\"choices\":[{\"index\":0,\"text\":\" tok\",\"finish_reason\":%s}]}\n\n",
                       DIGITS, "", DIGITS, "", reason);
    return sprintf(text,
                   "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\","
                   "\"r\":%*s,\"t\":%*s,\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\" tok\"},"
                   "\"finish_reason\":%s}]}\n\n",
                   DIGITS, "", DIGITS, "", reason);
}

static void prepare(struct token *token, enum kind kind, int is_last) {
    char payload[1024];
    size_t payload_size = (size_t)document(payload, kind, is_last), headers = sizeof EVENT_HEADERS - 1;
    token->frame_size = kind == SAGEMAKER ? PRELUDE + headers + payload_size + CRC : payload_size;
    char *at = token->text + sprintf(token->text, "%zx\r\n", token->frame_size);
    token->frame_at = (size_t)(at - token->text);
    if (kind == SAGEMAKER) {
        put_be32(at, (uint32_t)token->frame_size);
        put_be32(at + 4, (uint32_t)headers);
        put_be32(at + 8, crc32_of(at, 8));
        memcpy(at + PRELUDE, EVENT_HEADERS, headers);
        memcpy(at + PRELUDE + headers, payload, payload_size);
    } else {
        memcpy(at, payload, payload_size);
    }
    memcpy(at + token->frame_size, "\r\n", 2);
    token->size = token->frame_at + token->frame_size + 2;
    token->asked_at = (size_t)((char *)memmem(token->text, token->size, "\"r\":", 4) - token->text) + 4;
    token->written_at = (size_t)((char *)memmem(token->text, token->size, "\"t\":", 4) - token->text) + 4;
}

void prepare_tokens(void) {
    for (uint32_t n = 0; n < 256; n++) {
        crc_table[n] = n;
        for (int bit = 0; bit < 8; bit++) crc_table[n] = (crc_table[n] >> 1) ^ (crc_table[n] & 1 ? 0xedb88320u : 0);
    }
    for (int kind = 0; kind < KINDS; kind++)
        for (int is_last = 0; is_last < 2; is_last++) prepare(&tokens[kind][is_last], (enum kind)kind, is_last);
}

int kind_of_path(const char *path, enum kind *kind) {
    if (strstr(path, "/invocations-response-stream")) *kind = SAGEMAKER;
    else if (strstr(path, "/chat/completions")) *kind = CHAT;
    else if (strstr(path, "/completions")) *kind = COMPLETION;
    else return 0;
    return 1;
}

const char *answer_head(enum kind kind) {
    if (kind == SAGEMAKER)
        return "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\n"
               "x-Amzn-Invoked-Production-Variant: AllTraffic\r\nTransfer-Encoding: chunked\r\n\r\n";
    return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n";
}

size_t token_text(char *text, enum kind kind, int is_last, uint64_t asked_ns, uint64_t written_ns) {
    const struct token *token = &tokens[kind][is_last];
    memcpy(text, token->text, token->size);
    put_number(text + token->asked_at, asked_ns);
    put_number(text + token->written_at, written_ns);
    if (kind == SAGEMAKER) {
        char *frame = text + token->frame_at;
        put_be32(frame + token->frame_size - CRC, crc32_of(frame, token->frame_size - CRC));
    }
    return token->size;
}

size_t answer_end(char *text, enum kind kind, int tells_usage, int count) {
    char payload[512] = "";
    int size = 0;
    if (kind == SAGEMAKER) return (size_t)sprintf(text, "0\r\n\r\n");
    if (tells_usage)
        size = sprintf(payload,
                       "data: {\"id\":\"1\",\"object\":\"%s\",\"created\":1,\"model\":\"m\",\"choices\":[],\"usage\":"
                       "{\"prompt_tokens\":32,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\n",
                       kind == CHAT ? "chat.completion.chunk" : "text_completion", count, 32 + count);
    size += sprintf(payload + size, "data: [DONE]\n\n");
    return (size_t)sprintf(text, "%x\r\n%s\r\n0\r\n\r\n", (unsigned)size, payload);
}
