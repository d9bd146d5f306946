/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser_cases.h - requests, and what must come of each; data of test_parser.c, in the
 * notation of parse_trace.h. Sources: RFC 9110, RFC 9112, and what llhttp lets through.
 */
#ifndef TEST_PARSER_CASES_H
#define TEST_PARSER_CASES_H

#include "base/slice.h"

struct parser_case {
    const char *name;
    struct slice input;
    const char *expected;
};

#define H "Host: h\r\n"
#define CASE(name_, input_, expected_)                                                             \
    {                                                                                              \
        .name = (name_), .input = {(input_), sizeof(input_) - 1}, .expected = (expected_)          \
    }

static const struct parser_case valid_cases[] = {
    CASE("small", "GET / HTTP/1.1\r\n" H "\r\n", "GET / 1.1 keep host=h [Host=h]\n"),
    CASE("nothing", "", ""),
    CASE("query", "GET /a/b?x=1&y=/?z HTTP/1.1\r\n" H "\r\n",
         "GET /a/b?x=1&y=/?z 1.1 keep host=h [Host=h]\n"),
    CASE("empty query", "GET /a? HTTP/1.1\r\n" H "\r\n", "GET /a? 1.1 keep host=h [Host=h]\n"),
    CASE("white space around values",
         "GET / HTTP/1.1\r\nHost:\t h \t\r\nA:\r\nB: \t \r\nC:c d\r\n\r\n",
         "GET / 1.1 keep host=h [Host=h] [A=] [B=] [C=c d]\n"),
    CASE("high bytes in a value", "GET / HTTP/1.1\r\n" H "A: \x80\xff\r\n\r\n",
         "GET / 1.1 keep host=h [Host=h] [A=\x80\xff]\n"),
    CASE("pipelined",
         "GET /1 HTTP/1.1\r\n" H "\r\nHEAD /2 HTTP/1.1\r\n" H "\r\nGET /3 HTTP/1.1\r\n" H "\r\n",
         "GET /1 1.1 keep host=h [Host=h]\nHEAD /2 1.1 keep host=h [Host=h]\nGET /3 1.1 keep "
         "host=h [Host=h]\n"),
    CASE("empty lines before it", "\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n\r\n",
         "GET / 1.1 keep host=h [Host=h]\n"),
    CASE("unfinished head", "GET / HTTP/1.1\r\nHost:", "unfinished\n"),
    CASE("close", "GET / HTTP/1.1\r\n" H "Connection: Close\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n",
         "GET / 1.1 close host=h [Host=h] [Connection=Close]\nGET / 1.1 keep host=h [Host=h]\n"),
    CASE("close in a list", "GET / HTTP/1.1\r\n" H "Connection: foo, ,\tCLOSE\t,bar\r\n\r\n",
         "GET / 1.1 close host=h [Host=h] [Connection=foo, ,\tCLOSE\t,bar]\n"),
    CASE("close in another field",
         "GET / HTTP/1.1\r\n" H "Proxy-Connection: close\r\nX: close\r\n\r\n",
         "GET / 1.1 keep host=h [Host=h] [Proxy-Connection=close] [X=close]\n"),
    CASE("HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", "GET / 1.0 close host=\n"),
    CASE("HTTP/1.0 that asks", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
         "GET / 1.0 keep host= [Connection=Keep-Alive]\n"),
    CASE("HTTP/1.0 that asks and declines",
         "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n",
         "GET / 1.0 close host= [Connection=keep-alive, close]\n"),
    CASE("HTTP/1.0 with Expect",
         "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
         "head\nPOST / 1.0 close host= [Expect=100-continue] [Content-Length=1] 1 body=x\n"),
    CASE("body",
         "POST /a HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n" H "\r\n",
         "head\nPOST /a 1.1 keep host=h [Host=h] [Content-Length=5] 5 body=hello\nGET / 1.1 keep "
         "host=h [Host=h]\n"),
    CASE("body that looks like a request",
         "PUT / HTTP/1.1\r\n" H "Content-Length: 18\r\n\r\nGET / HTTP/1.1\r\n\r\n",
         "head\nPUT / 1.1 keep host=h [Host=h] [Content-Length=18] 18 body=GET / "
         "HTTP/1.1\r\n\r\n\n"),
    CASE("no body", "POST / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n",
         "POST / 1.1 keep host=h [Host=h] [Content-Length=0]\nGET / 1.1 keep host=h [Host=h]\n"),
    CASE("body of a GET", "GET / HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nab",
         "head\nGET / 1.1 keep host=h [Host=h] [Content-Length=2] 2 body=ab\n"),
    CASE("unfinished body", "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhell",
         "head\nunfinished\n"),
    CASE("chunked",
         "POST / HTTP/1.1\r\n" H
         "Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n1;a=b;c=\"d;e\"\r\n!\r\n0\r\n\r\nGET / "
         "HTTP/1.1\r\n" H "\r\n",
         "head\nPOST / 1.1 keep host=h [Host=h] [Transfer-Encoding=Chunked] 6 body=hello!\nGET / "
         "1.1 keep host=h [Host=h]\n"),
    CASE("chunked, and a tab",
         "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\t\r\n\r\n1\r\na\r\n0\r\n\r\n",
         "head\nPOST / 1.1 keep host=h [Host=h] [Transfer-Encoding=chunked] 1 body=a\n"),
    CASE("empty chunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         "head\nPOST / 1.1 keep host=h [Host=h] [Transfer-Encoding=chunked]\n"),
    CASE("chunk sizes in capitals and with zeros",
         "POST / HTTP/1.1\r\n" H
         "Transfer-Encoding: chunked\r\n\r\n00A\r\n0123456789\r\n000\r\n\r\n",
         "head\nPOST / 1.1 keep host=h [Host=h] [Transfer-Encoding=chunked] 10 body=0123456789\n"),
    CASE("trailers are dropped",
         "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\nHost: "
         "other\r\nTransfer-Encodings: x\r\nTransfer: x\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n",
         "head\nPOST / 1.1 keep host=h [Host=h] [Transfer-Encoding=chunked] 1 body=a\nGET / 1.1 "
         "keep host=h [Host=h]\n"),
    CASE("close in a trailer",
         "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\nConnection: close\r\n\r\n",
         "head\nPOST / 1.1 close host=h [Host=h] [Transfer-Encoding=chunked]\n"),
    CASE("Expect", "PUT / HTTP/1.1\r\n" H "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx",
         "head\nPUT / 1.1 keep expect host=h [Host=h] [Expect=100-Continue] [Content-Length=1] 1 "
         "body=x\n"),
    CASE("Expect without a body", "GET / HTTP/1.1\r\n" H "Expect: 100-continue\r\n\r\n",
         "GET / 1.1 keep host=h [Host=h] [Expect=100-continue]\n"),
    CASE("Upgrade is ignored",
         "GET / HTTP/1.1\r\n" H
         "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n",
         "GET / 1.1 keep host=h [Host=h] [Connection=Upgrade] [Upgrade=websocket]\nGET / 1.1 keep "
         "host=h [Host=h]\n"),
    CASE("Upgrade with a body",
         "POST / HTTP/1.1\r\n" H
         "Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhiGET / HTTP/1.1\r\n" H
         "\r\n",
         "head\nPOST / 1.1 keep host=h [Host=h] [Connection=Upgrade] [Upgrade=h2c] "
         "[Content-Length=2] 2 body=hi\nGET / 1.1 keep host=h [Host=h]\n"),
    CASE("CONNECT is a message like others",
         "CONNECT a.b:443 HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nhiGET / HTTP/1.1\r\n" H "\r\n",
         "head\nCONNECT a.b:443 1.1 keep host=a.b:443 [Host=h] [Content-Length=2] 2 body=hi\nGET / "
         "1.1 keep host=h [Host=h]\n"),
    CASE("OPTIONS of the server", "OPTIONS * HTTP/1.1\r\n" H "\r\n",
         "OPTIONS * 1.1 keep host=h [Host=h]\n"),
    CASE("absolute target", "GET http://a:80/b?c HTTP/1.1\r\n" H "\r\n",
         "GET /b?c 1.1 keep host=a:80 [Host=h]\n"),
    CASE("absolute target without path", "GET HTTP://a HTTP/1.1\r\n" H "\r\n",
         "GET / 1.1 keep host=a [Host=h]\n"),
    CASE("absolute target with query alone", "GET https://a?c HTTP/1.1\r\n" H "\r\n",
         "GET /?c 1.1 keep host=a [Host=h]\n"),
    CASE("absolute OPTIONS", "OPTIONS http://a HTTP/1.1\r\n" H "\r\n",
         "OPTIONS * 1.1 keep host=a [Host=h]\n"),
    CASE("unknown method",
         "BREW /pot HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\nxGET / HTTP/1.1\r\n" H "\r\n",
         "head\n?BREW /pot 1.1 keep host=h [Host=h] [Content-Length=1] 1 body=x\nGET / 1.1 keep "
         "host=h [Host=h]\n"),
    CASE("unknown method like a known one",
         "GETX / HTTP/1.1\r\n" H "\r\nGE / HTTP/1.1\r\n" H "\r\nget / HTTP/1.1\r\n" H "\r\n",
         "?GETX / 1.1 keep host=h [Host=h]\n?GE / 1.1 keep host=h [Host=h]\n?get / 1.1 keep host=h "
         "[Host=h]\n"),
    CASE("methods that only llhttp knows",
         "PROPFIND / HTTP/1.1\r\n" H "\r\nSOURCE / HTTP/1.1\r\n" H "\r\nDESCRIBE / HTTP/1.1\r\n" H
         "\r\n",
         "?PROPFIND / 1.1 keep host=h [Host=h]\n?SOURCE / 1.1 keep host=h [Host=h]\n?DESCRIBE / "
         "1.1 keep host=h [Host=h]\n"),
    CASE("all our methods",
         "HEAD / HTTP/1.1\r\n" H "\r\nPOST / HTTP/1.1\r\n" H "\r\nDELETE / HTTP/1.1\r\n" H
         "\r\nPATCH / HTTP/1.1\r\n" H "\r\nTRACE / HTTP/1.1\r\n" H "\r\n",
         "HEAD / 1.1 keep host=h [Host=h]\nPOST / 1.1 keep host=h [Host=h]\nDELETE / 1.1 keep "
         "host=h [Host=h]\nPATCH / 1.1 keep host=h [Host=h]\nTRACE / 1.1 keep host=h [Host=h]\n"),
    CASE("hosts",
         "GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\nGET / HTTP/1.1\r\nHost: "
         "a-b_c.d~%41:\r\n\r\nGET / HTTP/1.1\r\nHost:\r\n\r\n",
         "GET / 1.1 keep host=[::1]:8080 [Host=[::1]:8080]\nGET / 1.1 keep host=a-b_c.d~%41: "
         "[Host=a-b_c.d~%41:]\nGET / 1.1 keep host= [Host=]\n"),
};

static const struct parser_case refused_cases[] = {
    /* the request line */
    CASE("TLS", "\x16\x03\x01\x02", "refused 400\n"),
    CASE("space in front", " GET / HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("bare LF in front", "\nGET / HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("bare CR in front", "\rGET / HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("five empty lines in front", "\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n",
         "refused 400\n"),
    CASE("method that is no token", "G(T / HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("method alone", "GET\r\n\r\n", "refused 400\n"),
    CASE("unknown method alone", "BREW\r\n\r\n", "refused 400\n"),
    CASE("tab after the method", "GET\t/ HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("two spaces", "GET  / HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("two spaces before the version", "GET /  HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("space at the end", "GET / HTTP/1.1 \r\n" H "\r\n", "refused 400\n"),
    CASE("space in the target", "GET /a b HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("no target", "GET HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("no version", "GET /\r\n", "refused 400\n"),
    CASE("no version, LF", "GET /\n", "refused 400\n"),
    CASE("bare LF", "GET / HTTP/1.1\n" H "\r\n", "refused 400\n"),
    CASE("bare CR", "GET / HTTP/1.1\rHost: h\r\n\r\n", "refused 400\n"),
    CASE("fragment", "GET /a#b HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("fragment after a query", "GET /a?b#c HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("NUL in the target", "GET /\0 HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("DEL in the target", "GET /\x7f HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("high byte in the target", "GET /\xc3\xa4 HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("tab in the target", "GET /\t HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("relative target", "GET a HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("authority for GET", "GET a:80 HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("star for GET", "GET * HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("star and more", "OPTIONS *a HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("other scheme", "GET ftp://a/ HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("absolute without host", "GET http:///a HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("absolute with user", "GET http://u@a/ HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("absolute with bad port", "GET http://a:x/ HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("CONNECT without port", "CONNECT a HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("CONNECT with a path", "CONNECT /a HTTP/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("RTSP", "OPTIONS / RTSP/1.0\r\n" H "\r\n", "refused 400\n"),
    CASE("ICE", "SOURCE / ICE/1.0\r\n" H "\r\n", "refused 400\n"),
    CASE("version without minor", "GET / HTTP/1\r\n" H "\r\n", "refused 400\n"),
    CASE("version of letters", "GET / HTTP/x.y\r\n" H "\r\n", "refused 400\n"),
    CASE("version too long", "GET / HTTP/1.10\r\n" H "\r\n", "refused 400\n"),
    CASE("small letters", "GET / http/1.1\r\n" H "\r\n", "refused 400\n"),
    CASE("HTTP/0.9", "GET / HTTP/0.9\r\n" H "\r\n", "refused 505\n"),
    CASE("HTTP/1.2", "GET / HTTP/1.2\r\n" H "\r\n", "refused 505\n"),
    CASE("HTTP/2.0", "GET / HTTP/2.0\r\n" H "\r\n", "refused 505\n"),
    CASE("HTTP/3.0", "GET / HTTP/3.0\r\n" H "\r\n", "refused 505\n"),
    CASE("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "refused 505\n"),
    CASE("PRI of HTTP/1.1", "PRI / HTTP/1.1\r\n" H "\r\n", "refused 501\n"),
    CASE("method too long", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOP / HTTP/1.1\r\n" H "\r\n",
         "refused 501\n"),
    /* fields */
    CASE("no Host", "GET / HTTP/1.1\r\n\r\n", "refused 400\n"),
    CASE("no Host for an absolute target", "GET http://a/ HTTP/1.1\r\n\r\n", "refused 400\n"),
    CASE("two Hosts", "GET / HTTP/1.1\r\n" H H "\r\n", "refused 400\n"),
    CASE("two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\n" H "host: i\r\n\r\n", "refused 400\n"),
    CASE("list of Hosts", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "refused 400\n"),
    CASE("Host with path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "refused 400\n"),
    CASE("Host with user", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", "refused 400\n"),
    CASE("Host with bad port", "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", "refused 400\n"),
    CASE("Host with port beyond", "GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", "refused 400\n"),
    CASE("Host is a port", "GET / HTTP/1.1\r\nHost: :80\r\n\r\n", "refused 400\n"),
    CASE("Host with open bracket", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", "refused 400\n"),
    CASE("Host with bad percent code", "GET / HTTP/1.1\r\nHost: a%4\r\n\r\n", "refused 400\n"),
    CASE("Host with high byte", "GET / HTTP/1.1\r\nHost: \xc3\xa4\r\n\r\n", "refused 400\n"),
    CASE("space before the colon", "GET / HTTP/1.1\r\nHost : h\r\n\r\n", "refused 400\n"),
    CASE("space before the colon of a length", "GET / HTTP/1.1\r\n" H "Content-Length : 5\r\n\r\n",
         "refused 400\n"),
    CASE("space before the first field", "GET / HTTP/1.1\r\n Host: h\r\n\r\n", "refused 400\n"),
    CASE("folded", "GET / HTTP/1.1\r\n" H "A: b\r\n c\r\n\r\n", "refused 400\n"),
    CASE("folded after an empty value", "GET / HTTP/1.1\r\n" H "A:\r\n c\r\n\r\n", "refused 400\n"),
    CASE("no colon", "GET / HTTP/1.1\r\n" H "A\r\n\r\n", "refused 400\n"),
    CASE("no name", "GET / HTTP/1.1\r\n" H ": a\r\n\r\n", "refused 400\n"),
    CASE("name with high byte", "GET / HTTP/1.1\r\n" H "\xc3\xa4: a\r\n\r\n", "refused 400\n"),
    CASE("NUL in a name", "GET / HTTP/1.1\r\n" H "A\0: a\r\n\r\n", "refused 400\n"),
    CASE("NUL in a value", "GET / HTTP/1.1\r\n" H "A: \0\r\n\r\n", "refused 400\n"),
    CASE("DEL in a value", "GET / HTTP/1.1\r\n" H "A: a\x7f\r\n\r\n", "refused 400\n"),
    CASE("control in a value",
         "GET / HTTP/1.1\r\n" H "A: a\x01"
         "b\r\n\r\n",
         "refused 400\n"),
    CASE("LF in a value", "GET / HTTP/1.1\r\n" H "A: a\nB: b\r\n\r\n", "refused 400\n"),
    CASE("CR in a value", "GET / HTTP/1.1\r\n" H "A: a\rb\r\n\r\n", "refused 400\n"),
    CASE("LF at the end", "GET / HTTP/1.1\r\n" H "\n", "refused 400\n"),
    CASE("CR CR at the end", "GET / HTTP/1.1\r\n" H "\r\r\n", "refused 400\n"),
    CASE("Expect other", "PUT / HTTP/1.1\r\n" H "Expect: tea\r\nContent-Length: 1\r\n\r\nx",
         "refused 417\n"),
    /* framing */
    CASE("length and chunked",
         "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
         "refused 400\n"),
    CASE("chunked and length",
         "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
         "refused 400\n"),
    CASE("empty coding and length",
         "POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\nContent-Length: 5\r\n\r\n",
         "refused 400\n"),
    CASE("two lengths", "POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
         "refused 400\n"),
    CASE("list of lengths", "POST / HTTP/1.1\r\n" H "Content-Length: 5, 6\r\n\r\n",
         "refused 400\n"),
    CASE("signed length", "POST / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\n", "refused 400\n"),
    CASE("negative length", "POST / HTTP/1.1\r\n" H "Content-Length: -5\r\n\r\n", "refused 400\n"),
    CASE("hex length", "POST / HTTP/1.1\r\n" H "Content-Length: 0x5\r\n\r\n", "refused 400\n"),
    CASE("empty length", "POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n", "refused 400\n"),
    CASE("length with a space", "POST / HTTP/1.1\r\n" H "Content-Length: 1 2\r\n\r\n",
         "refused 400\n"),
    CASE("length of 2^64", "POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551616\r\n\r\n",
         "refused 400\n"),
    CASE("length of 2^64 - 1",
         "POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551615\r\n\r\n", "refused 400\n"),
    CASE("length over the limit", "POST / HTTP/1.1\r\n" H "Content-Length: 1048577\r\n\r\n",
         "refused 413\n"),
    CASE("length over the limit, with Expect",
         "POST / HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 9999999999\r\n\r\n",
         "refused 413\n"),
    CASE("gzip", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\n", "refused 501\n"),
    CASE("gzip, chunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n",
         "refused 501\n"),
    CASE("chunked, gzip", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, gzip\r\n\r\n",
         "refused 501\n"),
    CASE("xchunked", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n",
         "refused 501\n"),
    CASE("chunked twice",
         "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
         "refused 501\n"),
    CASE("gzip, and chunked in a field of its own",
         "POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
         "refused 501\n"),
    CASE("chunked with parameter", "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked;a=b\r\n\r\n",
         "refused 501\n"),
    CASE("empty coding", "POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n", "refused 501\n"),
    CASE("chunked in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
         "refused 400\n"),
};

#define CHUNKED "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"

static const struct parser_case refused_body_cases[] = {
    CASE("no size", CHUNKED "\r\n", "head\nrefused 400\n"),
    CASE("size of letters", CHUNKED "x\r\n", "head\nrefused 400\n"),
    CASE("negative size", CHUNKED "-1\r\n", "head\nrefused 400\n"),
    CASE("hex size", CHUNKED "0x1\r\na\r\n", "head\nrefused 400\n"),
    CASE("space after the size", CHUNKED "1 \r\na\r\n", "head\nrefused 400\n"),
    CASE("LF after the size", CHUNKED "1\na\r\n", "head\nrefused 400\n"),
    CASE("size of 2^64", CHUNKED "10000000000000000\r\n", "head\nrefused 400\n"),
    CASE("size of 2^64 - 1", CHUNKED "ffffffffffffffff\r\n", "head\nrefused 413\n"),
    CASE("size over the limit", CHUNKED "100001\r\n", "head\nrefused 413\n"),
    CASE("sizes over the limit", CHUNKED "1\r\na\r\n100000\r\n", "head\nrefused 413\n"),
    CASE("chunk longer than its size", CHUNKED "1\r\nab\r\n", "head\nrefused 400\n"),
    CASE("LF after the data", CHUNKED "1\r\na\n", "head\nrefused 400\n"),
    CASE("length in a trailer", CHUNKED "0\r\nContent-Length: 5\r\n\r\n", "head\nrefused 400\n"),
    CASE("coding in a trailer", CHUNKED "0\r\nTransfer-Encoding: chunked\r\n\r\n",
         "head\nrefused 400\n"),
    CASE("other coding in a trailer", CHUNKED "0\r\ntransfer-encodinG: x\r\n\r\n",
         "head\nrefused 400\n"),
    CASE("empty coding in a trailer", CHUNKED "0\r\nA: b\r\nTransfer-Encoding:\r\n\r\n",
         "head\nrefused 400\n"),
    CASE("folded trailer", CHUNKED "0\r\nA: b\r\n c\r\n\r\n", "head\nrefused 400\n"),
    CASE("control in an extension", CHUNKED "1;a\x01\r\na\r\n", "head\nrefused 400\n"),
};

#endif
