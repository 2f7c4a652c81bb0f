// The load client: opens event streams over HTTP/1.1 or HTTP/2, counts their events, tells latency.
//
//   client PORT h1|h2|h2-single STREAMS STALLED HEAD_FILE BODY_FILE TIMES_FILE MARKER TIMEOUT_S
//
// h2 is one connection for all streams, the others are a connection each. STALLED further streams are
// asked for and never read: the socket on h1, a window of 4 KiB that never grows on h2. They count
// for nothing. Every stream is the same POST. For h1 HEAD_FILE holds the head as it goes on the wire, for h2 a
// header block of RFC 7541 that neither needs nor changes the dynamic table. An event is a line that
// begins with "data:". An event that holds MARKER tells its step by the five letters behind it (the
// words of words.py); TIMES_FILE is the table of step_times.py. An empty MARKER: no latency.
//
// A stream ends by the last chunk, the content length, END_STREAM or the close of a connection that
// said neither. Prints one JSON object. Exit status 1 and a line on stderr if anything went wrong
// that makes the count worthless: another status than 200, a reset, a cut stream, a time-out.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WORDS (16 * 4 * 16 * 4 * 16)
#define INPUT (1 << 18)    // more than any frame that we allow, and a read is seldom larger
#define LINE 8192          // of a longer line only so much is looked at
#define WINDOW 0x7fffffff  // so wide that it never needs to grow
#define STALLED_WINDOW 4096

typedef struct {
    int64_t asked;      // ns; 0: the request has not left
    int answered, ended, stalled;
    int have;           // bytes of an unfinished line
    char *line;
} Stream;

typedef struct {
    int fd, closed, unread;
    Stream *streams;
    int next;           // streams that were asked for
    unsigned char *in;
    int have;
    char *out;          // what the socket did not take yet
    size_t out_have, out_room;
    // HTTP/1.1
    enum { HEAD, SIZE, CHUNK, CHUNK_END, TRAILER, LENGTH, TO_CLOSE, DONE } at;
    int64_t left;
    // HTTP/2
    int settled;        // the server's SETTINGS are here
    int64_t window, first_window;
    uint32_t max_streams;
} Connection;

static Connection *all;
static int poll_fd, connections, each, h2, stalled;
static char *head, *body;
static size_t head_size, body_size;
static const char *marker;
static size_t marker_size;
static volatile uint64_t *times;
static int64_t *latency;
static size_t latencies, latency_room;
static int64_t *first_bytes;
static long first_byte_count, events, ended, bytes, reads;
static int64_t began, first_event, last_event;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(1);
}

static void *must(void *memory) {
    if (!memory) fail("out of memory");
    return memory;
}

static char *contents(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) fail("%s: %s", path, strerror(errno));
    fseek(file, 0, SEEK_END);
    *size = ftell(file);
    rewind(file);
    char *data = must(malloc(*size + 1));
    if (fread(data, 1, *size, file) != *size) fail("%s: short", path);
    fclose(file);
    return data;
}

// ---------------------------------------------------------------- events

static int word(const char *letters) {
    static const char *kinds[2] = {"bcdfghjklmnprstv", "aeio"};
    int total = 0, weight = 1;
    for (int i = 0; i < 5; i++) {
        const char *kind = kinds[i & 1], *place = letters[i] ? strchr(kind, letters[i]) : NULL;
        if (!place) return -1;
        total += weight * (int)(place - kind);
        weight *= strlen(kind);
    }
    return total;
}

static void take_line(const char *line, int size, int64_t t) {
    if (size < 5 || memcmp(line, "data:", 5)) return;
    events++;
    if (!first_event) first_event = t;
    last_event = t;
    if (!marker_size) return;
    const char *found = memmem(line, size, marker, marker_size);
    if (!found || line + size - found < (long)marker_size + 5) return;
    int number = word(found + marker_size);
    if (number < 0 || !times[number]) return;
    if (latencies == latency_room) {
        latency_room = latency_room ? 2 * latency_room : 1 << 16;
        latency = must(realloc(latency, latency_room * sizeof *latency));
    }
    latency[latencies++] = t - (int64_t)times[number];
}

static void take_text(Stream *s, const char *text, int64_t size, int64_t t) {
    if (s->stalled) return;
    while (size > 0) {
        const char *end = memchr(text, '\n', size);
        int64_t length = end ? end - text : size;
        if (end && !s->have) {
            take_line(text, length, t);
        } else {
            int room = LINE - s->have, kept = length < room ? (int)length : room;
            if (!s->line) s->line = must(malloc(LINE));
            memcpy(s->line + s->have, text, kept);
            s->have += kept;
            if (end) {
                take_line(s->line, s->have, t);
                s->have = 0;
            }
        }
        text += length + 1;
        size -= length + 1;
    }
}

static void answered(Stream *s, int64_t t) {
    if (s->answered || s->stalled) return;
    s->answered = 1;
    first_bytes[first_byte_count++] = t - s->asked;
}

static void stream_ends(Stream *s) {
    if (s->stalled) return;
    if (s->ended) fail("a stream ended twice");
    if (s->have) fail("a stream ended within a line");
    s->ended = 1;
    ended++;
}

// ---------------------------------------------------------------- sending

static void watch(Connection *c, int operation) {
    struct epoll_event e = {.data.ptr = c};
    e.events = (c->unread ? 0 : EPOLLIN) | (c->out_have ? EPOLLOUT : 0);
    epoll_ctl(poll_fd, operation, c->fd, &e);
}

static void flush(Connection *c) {
    size_t sent = 0;
    while (sent < c->out_have) {
        ssize_t n = write(c->fd, c->out + sent, c->out_have - sent);
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) fail("write: %s", strerror(errno));
        sent += n;
    }
    int waited = c->out_have > 0 && sent < c->out_have;
    memmove(c->out, c->out + sent, c->out_have - sent);
    c->out_have -= sent;
    if (sent || waited) watch(c, EPOLL_CTL_MOD);
}

static void put(Connection *c, const void *data, size_t size) {
    if (c->out_have + size > c->out_room) {
        c->out_room = 2 * (c->out_have + size);
        c->out = must(realloc(c->out, c->out_room));
    }
    memcpy(c->out + c->out_have, data, size);
    c->out_have += size;
}

static void put_frame(Connection *c, int type, int flags, uint32_t stream, const void *data, size_t size) {
    unsigned char h[9] = {size >> 16, size >> 8, size, type, flags,
                          stream >> 24, stream >> 16, stream >> 8, stream};
    put(c, h, 9);
    put(c, data, size);
}

// Ask for as many streams as the server's limit and the connection's window have room for.
static void ask(Connection *c) {
    if (h2 && (uint32_t)each > c->max_streams)
        fail("the server takes %u streams on a connection", c->max_streams);
    if (h2 && (int64_t)body_size > c->first_window) fail("the body does not fit the first window");
    while (c->next < each && (!h2 || (c->settled && c->window >= (int64_t)body_size))) {
        Stream *s = &c->streams[c->next];
        uint32_t id = 1 + 2 * c->next++;
        if (h2) {
            put_frame(c, 1, 4, id, head, head_size);  // HEADERS, END_HEADERS
            put_frame(c, 0, 1, id, body, body_size);  // DATA, END_STREAM
            uint32_t more = htonl(WINDOW - STALLED_WINDOW);
            if (stalled && !s->stalled) put_frame(c, 8, 0, id, &more, 4);
            c->window -= body_size;
        } else {
            put(c, head, head_size);
            put(c, body, body_size);
        }
        s->asked = now();
    }
    flush(c);
}

// The last `never` of its streams are stalled.
static void open_connection(Connection *c, int port, int never) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1, small = STALLED_WINDOW;
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->unread = never && !h2;
    if (c->unread) setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    if (connect(c->fd, (void *)&to, sizeof to)) fail("connect: %s", strerror(errno));
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->streams = must(calloc(each, sizeof *c->streams));
    for (int i = each - never; i < each; i++) c->streams[i].stalled = 1;
    c->in = must(malloc(INPUT));
    c->window = c->first_window = 65535;
    c->max_streams = UINT32_MAX;
    watch(c, EPOLL_CTL_ADD);
    if (h2) {
        uint32_t window = htonl(stalled ? STALLED_WINDOW : WINDOW);
        unsigned char settings[12] = {0, 2, 0, 0, 0, 0,  // no push
                                      0, 4};             // window of a stream
        memcpy(settings + 8, &window, 4);
        uint32_t grant = htonl(WINDOW - 65535);
        put(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
        put_frame(c, 4, 0, 0, settings, sizeof settings);
        put_frame(c, 8, 0, 0, &grant, 4);
        flush(c);
    } else {
        ask(c);
    }
}

// ---------------------------------------------------------------- HTTP/1.1

// The position after the next CRLF line, or NULL; *size is the line's length without CRLF.
static unsigned char *after_line(unsigned char *p, unsigned char *end, int *size) {
    unsigned char *lf = memchr(p, '\n', end - p);
    if (!lf) return NULL;
    *size = lf - p - (lf > p && lf[-1] == '\r');
    return lf + 1;
}

static unsigned char *take_head(Connection *c, unsigned char *p, unsigned char *end) {
    unsigned char *stop = memmem(p, end - p, "\r\n\r\n", 4);
    if (!stop) return NULL;
    if (memcmp(p, "HTTP/1.1 200", 12)) fail("answered with %.*s", (int)strcspn((char *)p, "\r"), p);
    *stop = 0;  // as text, for the two look-ups
    char *length = strcasestr((char *)p, "\r\ncontent-length:");
    if (strcasestr((char *)p, "\r\ntransfer-encoding: chunked")) {
        c->at = SIZE;
    } else if (length) {
        c->left = atoll(length + 17);
        c->at = LENGTH;
    } else {
        c->at = TO_CLOSE;
    }
    return stop + 4;
}

// Take what is whole of HTTP/1.1; the position after it.
static unsigned char *take_h1(Connection *c, unsigned char *p, unsigned char *end, int64_t t) {
    Stream *s = c->streams;
    unsigned char *after;
    int size;
    while (p < end) {
        switch (c->at) {
        case HEAD:
            answered(s, t);
            if (!(after = take_head(c, p, end))) return p;
            p = after;
            break;
        case SIZE:
            if (!(after = after_line(p, end, &size))) return p;
            c->left = strtoll((char *)p, NULL, 16);
            c->at = c->left ? CHUNK : TRAILER;
            p = after;
            break;
        case CHUNK_END:
            if (!(after = after_line(p, end, &size))) return p;
            if (size) fail("a chunk is longer than it said");
            c->at = SIZE;
            p = after;
            break;
        case TRAILER:
            if (!(after = after_line(p, end, &size))) return p;
            if (!size) c->at = DONE, stream_ends(s);
            p = after;
            break;
        case CHUNK:
        case LENGTH: {
            int64_t n = end - p < c->left ? end - p : c->left;
            take_text(s, (char *)p, n, t);
            p += n;
            c->left -= n;
            if (!c->left && c->at == LENGTH) c->at = DONE, stream_ends(s);
            else if (!c->left) c->at = CHUNK_END;
            break;
        }
        case TO_CLOSE:
            take_text(s, (char *)p, end - p, t);
            return end;
        case DONE:
            fail("more than the answer");
        }
    }
    return p;
}

// ---------------------------------------------------------------- HTTP/2

static uint32_t u32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

static void take_settings(Connection *c, const unsigned char *p, int size) {
    for (; size >= 6; p += 6, size -= 6) {
        int name = p[0] << 8 | p[1];
        if (name == 3) c->max_streams = u32(p + 2);
        if (name == 4) c->first_window = u32(p + 2);
    }
    put_frame(c, 4, 1, 0, "", 0);
    c->settled = 1;
    ask(c);
}

static void take_frame(Connection *c, int type, int flags, uint32_t id, unsigned char *p, int size, int64_t t) {
    uint32_t place = (id - 1) / 2;
    int of_stream = type <= 3 || type == 9;
    if (of_stream && (!(id & 1) || place >= (uint32_t)c->next)) fail("frame of stream %u", id);
    Stream *s = of_stream ? &c->streams[place] : NULL;
    int padded = type <= 1 && flags & 8 ? 1 + p[0] : 0;
    switch (type) {
    case 0:  // DATA
        if (padded) p += 1, size -= padded;
        take_text(s, (char *)p, size, t);
        break;
    case 1:  // HEADERS
        if (s->answered) break;  // trailers
        if (padded) p += 1, size -= padded;
        if (flags & 32) p += 5, size -= 5;
        while (size && (*p & 0xe0) == 0x20) p++, size--;  // a new size of the table, below 32
        if (!size || *p != 0x88) fail("stream %u was not answered with 200", id);
        answered(s, t);
        break;
    case 3:
        if (!s->ended && !s->stalled) fail("stream %u was reset, code %u", id, u32(p));
        break;
    case 4:
        if (!(flags & 1)) take_settings(c, p, size);
        break;
    case 6:
        if (!(flags & 1)) put_frame(c, 6, 1, 0, p, 8), flush(c);
        break;
    case 7:
        if (u32(p + 4)) fail("GOAWAY, code %u: %.*s", u32(p + 4), size - 8, p + 8);
        break;
    case 8:
        if (!id) c->window += u32(p), ask(c);
        break;
    }
    if (type <= 1 && flags & 1) stream_ends(s);
}

static unsigned char *take_h2(Connection *c, unsigned char *p, unsigned char *end, int64_t t) {
    while (end - p >= 9) {
        int size = p[0] << 16 | p[1] << 8 | p[2];
        if (size > INPUT - 9) fail("a frame of %d bytes", size);
        if (end - p < 9 + size) break;
        take_frame(c, p[3], p[4], u32(p + 5) & 0x7fffffff, p + 9, size, t);
        p += 9 + size;
    }
    return p;
}

// ---------------------------------------------------------------- the run

static void drop(Connection *c) {
    c->closed = 1;
    epoll_ctl(poll_fd, EPOLL_CTL_DEL, c->fd, NULL);
}

static void read_from(Connection *c) {
    ssize_t n = read(c->fd, c->in + c->have, INPUT - c->have);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
        if (n == 0 && c->at == TO_CLOSE) c->at = DONE, stream_ends(c->streams);
        for (int i = 0; i < each; i++)
            if (!c->streams[i].ended && !c->streams[i].stalled) fail("the connection of a stream was closed");
        drop(c);
        return;
    }
    int64_t t = now();
    reads++;
    bytes += n;
    c->have += n;
    unsigned char *end = c->in + c->have;
    unsigned char *rest = h2 ? take_h2(c, c->in, end, t) : take_h1(c, c->in, end, t);
    c->have = end - rest;
    if (c->have == INPUT) fail("a head of %d bytes", c->have);
    memmove(c->in, rest, c->have);
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double us(int64_t *sorted, long count, double part) {
    long at = (long)(count * part);
    return sorted[at < count ? at : count - 1] / 1e3;
}

int main(int argc, char **argv) {
    if (argc != 10) fail("usage: see the head of client.c");
    int port = atoi(argv[1]);
    h2 = strcmp(argv[2], "h1") != 0;
    long wanted = atoi(argv[3]);
    stalled = atoi(argv[4]);
    int shared = !strcmp(argv[2], "h2");
    connections = shared ? 1 : wanted + stalled;
    each = shared ? wanted + stalled : 1;
    head = contents(argv[5], &head_size);
    body = contents(argv[6], &body_size);
    marker = argv[8];
    marker_size = strlen(marker);
    double timeout = atof(argv[9]);
    if (marker_size) {
        int file = open(argv[7], O_RDONLY);
        times = mmap(NULL, WORDS * 8, PROT_READ, MAP_SHARED, file, 0);
        if (times == MAP_FAILED) fail("%s: %s", argv[7], strerror(errno));
    }
    first_bytes = must(malloc(wanted * sizeof *first_bytes));
    all = must(calloc(connections, sizeof *all));
    poll_fd = epoll_create1(0);
    began = now();
    for (int i = 0; i < connections; i++)
        open_connection(&all[i], port, shared ? stalled : i >= wanted);

    struct epoll_event found[256];
    while (ended < wanted) {
        int n = epoll_wait(poll_fd, found, 256, 500);
        if ((now() - began) / 1e9 > timeout) fail("%ld of %ld streams ended in time", ended, wanted);
        for (int i = 0; i < n; i++) {
            Connection *c = found[i].data.ptr;
            if (found[i].events & EPOLLOUT) flush(c);
            if (!c->closed && found[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
                if (c->unread) drop(c);
                else read_from(c);
            }
        }
    }
    qsort(first_bytes, first_byte_count, sizeof *first_bytes, ascending);
    printf("{\"events\":%ld,\"streams\":%ld,\"bytes\":%ld,\"reads\":%ld,\"seconds\":%.6f,\"head_p50_us\":%.1f",
           events, ended, bytes, reads, (last_event - first_event) / 1e9,
           us(first_bytes, first_byte_count, 0.5));
    if (latencies) {
        qsort(latency, latencies, sizeof *latency, ascending);
        printf(",\"timed\":%zu,\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f", latencies,
               us(latency, latencies, 0.5), us(latency, latencies, 0.99), us(latency, latencies, 1));
    }
    printf("}\n");
    return 0;
}
