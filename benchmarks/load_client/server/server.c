/* The neutral server of the load client's benchmark: one thread, epoll, timers in nanoseconds, optional TLS.
 *
 * It answers every POST with 64 tokens: the first 50 ms after the request, the next each 20 ms later, each in a chunk
 * and a write of its own. A path of SageMaker's runtime API is answered as an event stream with right checksums, one of
 * OpenAI's as server-sent events. Each token carries the server's clock (CLOCK_MONOTONIC, which clients of the same host
 * share): "r" when the request had arrived in full, "t" when the token was written.
 *
 * GET /stats tells what was asked and sent since the last time it was asked. Nothing here judges a client.
 *
 *   server HTTP_PORT TLS_PORT CERTIFICATE KEY
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"

enum { FIRST_TOKEN_NS = 50000000, GAP_NS = 20000000, TOKENS = 64, MAX_EVENTS = 1024, MAX_REQUEST = 1 << 20 };

struct connection {
    int socket;
    SSL *tls;
    int shaking, wants_write, closed, queued;
    char *in;
    size_t in_size, in_capacity;
    char *out; /* what the socket had no room for */
    size_t out_size, out_capacity;
    enum kind kind;
    int busy, tells_usage, tokens_sent;
    uint64_t asked_ns, due_ns;
    struct connection *next;
};

/* All waits of one queue are equally long, so that its order of arrival is the order of dueness. */
struct queue {
    struct connection *head, *tail;
};

static int poller;
static struct queue first_tokens, next_tokens;
static struct connection *garbage;
static struct {
    unsigned long long requests, tokens;
    uint64_t first_ns, last_ns;
    int busy, peak;
} stats;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void *grown(void *memory, size_t size) {
    void *larger = realloc(memory, size);
    if (!larger) die("realloc");
    return larger;
}

/* ---- queues */

static void enqueue(struct queue *queue, struct connection *c, uint64_t due_ns) {
    c->due_ns = due_ns;
    c->next = NULL;
    c->queued = 1;
    if (queue->tail) queue->tail->next = c;
    else queue->head = c;
    queue->tail = c;
}

static struct connection *dequeue(struct queue *queue) {
    struct connection *c = queue->head;
    queue->head = c->next;
    if (!queue->head) queue->tail = NULL;
    c->queued = 0;
    return c;
}

/* ---- connections */

static void watch(struct connection *c, int operation) {
    struct epoll_event event = {.events = EPOLLIN | (c->wants_write ? EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(poller, operation, c->socket, &event)) die("epoll_ctl");
}

/* A connection that waits in a queue is thrown away when its turn comes. */
static void discard(struct connection *c) {
    c->next = garbage;
    garbage = c;
}

static void hang_up(struct connection *c) {
    if (c->closed) return;
    c->closed = 1;
    if (c->busy) stats.busy--;
    if (c->tls) SSL_free(c->tls);
    close(c->socket);
    if (!c->queued) discard(c);
}

static int is_blocked(struct connection *c, int result) {
    if (!c->tls) return errno == EAGAIN;
    int error = SSL_get_error(c->tls, result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

static int push(struct connection *c, const char *data, size_t size) {
    return c->tls ? SSL_write(c->tls, data, (int)size) : (int)send(c->socket, data, size, MSG_NOSIGNAL);
}

static void write_all(struct connection *c, const char *data, size_t size) {
    while (size && !c->out_size && !c->closed) {
        int written = push(c, data, size);
        if (written > 0) {
            data += written;
            size -= (size_t)written;
        } else if (is_blocked(c, written)) {
            break;
        } else {
            hang_up(c);
        }
    }
    if (!size || c->closed) return;
    if (c->out_size + size > c->out_capacity) c->out = grown(c->out, c->out_capacity = (c->out_size + size) * 2);
    memcpy(c->out + c->out_size, data, size);
    c->out_size += size;
    if (!c->wants_write) {
        c->wants_write = 1;
        watch(c, EPOLL_CTL_MOD);
    }
}

static void flush(struct connection *c) {
    size_t done = 0;
    while (done < c->out_size) {
        int written = push(c, c->out + done, c->out_size - done);
        if (written <= 0) {
            if (!is_blocked(c, written)) hang_up(c);
            break;
        }
        done += (size_t)written;
    }
    if (c->closed) return;
    memmove(c->out, c->out + done, c->out_size -= done);
    if (!c->out_size) {
        c->wants_write = 0;
        watch(c, EPOLL_CTL_MOD);
    }
}

/* ---- answers */

static void answer_plainly(struct connection *c, const char *status, const char *body) {
    char text[1024];
    int size = snprintf(text, sizeof text,
                        "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status,
                        strlen(body), body);
    write_all(c, text, (size_t)size);
}

static void tell_stats(struct connection *c) {
    char body[512];
    double seconds = stats.last_ns > stats.first_ns ? (double)(stats.last_ns - stats.first_ns) / 1e9 : 0;
    snprintf(body, sizeof body, "{\"requests\":%llu,\"tokens\":%llu,\"seconds\":%.6f,\"peak_in_flight\":%d}",
             stats.requests, stats.tokens, seconds, stats.peak);
    answer_plainly(c, "200 OK", body);
    stats.requests = stats.tokens = 0;
    stats.first_ns = stats.last_ns = 0;
    stats.peak = stats.busy;
}

static void begin_answer(struct connection *c, enum kind kind, const char *body) {
    c->kind = kind;
    c->busy = 1;
    c->tokens_sent = 0;
    c->tells_usage = strstr(body, "include_usage") != NULL;
    c->asked_ns = now_ns();
    if (!stats.first_ns) stats.first_ns = c->asked_ns;
    stats.requests++;
    if (++stats.busy > stats.peak) stats.peak = stats.busy;
    write_all(c, answer_head(kind), strlen(answer_head(kind)));
    enqueue(&first_tokens, c, c->asked_ns + FIRST_TOKEN_NS);
}

static void respond(struct connection *c, const char *method, const char *path, const char *body) {
    enum kind kind;
    if (!strcmp(method, "POST") && kind_of_path(path, &kind)) begin_answer(c, kind, body);
    else if (!strcmp(path, "/stats")) tell_stats(c);
    else if (!strcmp(path, "/v1/models"))
        answer_plainly(c, "200 OK", "{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"object\":\"model\",\"owned_by\":\"nobody\"}]}");
    else if (!strcmp(path, "/health")) answer_plainly(c, "200 OK", "{\"status\":\"ok\"}");
    else answer_plainly(c, "404 Not Found", "{\"error\":\"no such path\"}");
}

/* Returns the size of the first request in the buffer, 0 when it isn't there in full. Bodies come by length only. */
static size_t request_size(struct connection *c) {
    char *end = memmem(c->in, c->in_size, "\r\n\r\n", 4);
    if (!end) return 0;
    size_t size = (size_t)(end - c->in) + 4;
    char *length = strcasestr(c->in, "\r\ncontent-length:");
    if (length && length < end) size += strtoul(length + 17, NULL, 10);
    char *expect = strcasestr(c->in, "\r\nexpect:");
    if (expect && expect < end && c->in_size == (size_t)(end - c->in) + 4)
        write_all(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    return c->in_size >= size ? size : 0;
}

static void serve_requests(struct connection *c) {
    size_t size;
    while (!c->closed && !c->busy && c->in_size && (size = request_size(c))) {
        char method[8] = "", path[512] = "", after = c->in[size];
        c->in[size] = 0;
        if (sscanf(c->in, "%7s %511s", method, path) != 2) {
            hang_up(c);
            return;
        }
        respond(c, method, path, strstr(c->in, "\r\n\r\n") + 4);
        if (c->closed) return;
        c->in[size] = after;
        memmove(c->in, c->in + size, c->in_size -= size);
        c->in[c->in_size] = 0;
    }
}

static void write_token(struct connection *c, uint64_t written_ns) {
    char text[MAX_TOKEN_BYTES];
    int is_last = ++c->tokens_sent == TOKENS;
    size_t size = token_text(text, c->kind, is_last, c->asked_ns, written_ns);
    if (is_last) size += answer_end(text + size, c->kind, c->tells_usage, TOKENS);
    stats.tokens++;
    stats.last_ns = written_ns;
    if (is_last) {
        c->busy = 0;
        stats.busy--;
    } else {
        enqueue(&next_tokens, c, c->due_ns + GAP_NS);
    }
    write_all(c, text, size);
    if (is_last && !c->closed) serve_requests(c);
}

static void write_due(struct queue *queue) {
    uint64_t now;
    while (queue->head && queue->head->due_ns <= (now = now_ns())) {
        struct connection *c = dequeue(queue);
        if (c->closed) discard(c);
        else write_token(c, now);
    }
}

/* ---- the loop */

static void read_from(struct connection *c) {
    if (c->shaking) {
        int shaken = SSL_accept(c->tls);
        if (shaken != 1) {
            if (!is_blocked(c, shaken)) hang_up(c);
            return;
        }
        c->shaking = 0;
    }
    for (;;) {
        if (c->in_size + 4097 > c->in_capacity) c->in = grown(c->in, c->in_capacity = c->in_capacity * 2 + 8192);
        size_t room = c->in_capacity - c->in_size - 1;
        int got = c->tls ? SSL_read(c->tls, c->in + c->in_size, (int)room) : (int)recv(c->socket, c->in + c->in_size, room, 0);
        if (got <= 0) {
            if ((got == 0 && !c->tls) || !is_blocked(c, got)) hang_up(c);
            break;
        }
        c->in_size += (size_t)got;
        c->in[c->in_size] = 0;
        if (c->in_size > MAX_REQUEST) hang_up(c);
        if (c->closed) break;
    }
    if (!c->closed) serve_requests(c);
}

static void accept_all(int listener, SSL_CTX *tls) {
    int one = 1, accepted;
    while ((accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        struct connection *c = calloc(1, sizeof *c);
        if (!c) die("calloc");
        c->socket = accepted;
        setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (tls) {
            c->tls = SSL_new(tls);
            SSL_set_fd(c->tls, accepted);
            SSL_set_accept_state(c->tls);
            c->shaking = 1;
        }
        watch(c, EPOLL_CTL_ADD);
    }
}

static int listening(const char *port) {
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 8192)) die("bind");
    return listener;
}

static SSL_CTX *tls_context(const char *certificate, const char *key) {
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    if (!tls || SSL_CTX_use_certificate_chain_file(tls, certificate) != 1 ||
        SSL_CTX_use_PrivateKey_file(tls, key, SSL_FILETYPE_PEM) != 1) {
        fprintf(stderr, "the certificate or its key can't be used\n");
        exit(1);
    }
    SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    return tls;
}

static uint64_t earliest_ns(void) {
    uint64_t first = first_tokens.head ? first_tokens.head->due_ns : UINT64_MAX;
    uint64_t next = next_tokens.head ? next_tokens.head->due_ns : UINT64_MAX;
    return first < next ? first : next;
}

static int wait_for(struct epoll_event *events) {
    uint64_t due = earliest_ns(), now = now_ns(), patience = due > now ? due - now : 0;
    struct timespec timeout = {(time_t)(patience / 1000000000u), (long)(patience % 1000000000u)};
    return epoll_pwait2(poller, events, MAX_EVENTS, due == UINT64_MAX ? NULL : &timeout, NULL);
}

static void empty_garbage(void) {
    while (garbage) {
        struct connection *c = garbage;
        garbage = c->next;
        free(c->in);
        free(c->out);
        free(c);
    }
}

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: server HTTP_PORT TLS_PORT CERTIFICATE KEY\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_TIMERSLACK, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    prepare_tokens();
    SSL_CTX *tls = tls_context(arguments[3], arguments[4]);
    int plain = listening(arguments[1]), secure = listening(arguments[2]);
    poller = epoll_create1(0);
    struct epoll_event on_plain = {.events = EPOLLIN, .data.ptr = &plain}, on_secure = {.events = EPOLLIN, .data.ptr = &secure};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, plain, &on_plain) || epoll_ctl(poller, EPOLL_CTL_ADD, secure, &on_secure))
        die("epoll_ctl");
    static struct epoll_event events[MAX_EVENTS];
    for (;;) {
        int ready = wait_for(events);
        write_due(&next_tokens); /* the clock first: gaps shall be exact */
        write_due(&first_tokens);
        for (int i = 0; i < ready; i++) {
            struct connection *c = events[i].data.ptr;
            if (events[i].data.ptr == &plain) accept_all(plain, NULL);
            else if (events[i].data.ptr == &secure) accept_all(secure, tls);
            else {
                if (!c->closed && (events[i].events & EPOLLOUT) && !c->shaking) flush(c);
                if (!c->closed && (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))) read_from(c);
            }
        }
        empty_garbage();
    }
}
