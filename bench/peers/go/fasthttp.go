// SPDX-License-Identifier: Apache-2.0

// fasthttp is the demo's routes on valyala/fasthttp: a goroutine a connection, and nothing allocated twice.
package main

import (
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

func main() {
	port, remote := os.Args[1], os.Args[2]
	client := &fasthttp.HostClient{Addr: "127.0.0.1:" + remote, MaxConns: 20000}

	handler := func(ctx *fasthttp.RequestCtx) {
		ctx.SetContentType("text/plain;charset=UTF-8")
		path := string(ctx.Path())
		switch {
		case path == "/currentThread":
			ctx.SetBodyString("Goroutine[#1,http-1]/runnable@processor-01.")
		case strings.HasPrefix(path, "/blocking/"):
			status, body, err := client.Get(nil, "http://127.0.0.1:"+remote+"/remote/"+path[len("/blocking/"):])
			if err != nil || status != 200 {
				ctx.Error("bad gateway", 502)
				return
			}
			ctx.SetBody(body)
		case strings.HasPrefix(path, "/remote/"):
			n := path[len("/remote/"):]
			seconds, err := strconv.ParseFloat(n, 64)
			if err != nil || seconds < 0 {
				ctx.Error("n is no number", 400)
				return
			}
			time.Sleep(time.Duration(seconds * float64(time.Second)))
			ctx.SetBodyString("Hello, delayed by " + n + " seconds.")
		default:
			ctx.Error("not found", 404)
		}
	}
	server := &fasthttp.Server{Handler: handler, NoDefaultServerHeader: true, Concurrency: 1 << 20}
	log.Fatal(server.ListenAndServe("127.0.0.1:" + port))
}
