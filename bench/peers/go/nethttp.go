// SPDX-License-Identifier: Apache-2.0

// nethttp is the demo's routes on Go's own HTTP server: a goroutine a connection.
package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	port, remote := os.Args[1], os.Args[2]
	transport := &http.Transport{MaxIdleConns: 0, MaxIdleConnsPerHost: 1024}
	client := &http.Client{Transport: transport, Timeout: 60 * time.Second}

	text := func(w http.ResponseWriter, body string) {
		w.Header().Set("Content-Type", "text/plain;charset=UTF-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		io.WriteString(w, body)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/currentThread", func(w http.ResponseWriter, r *http.Request) {
		text(w, "Goroutine[#1,http-1]/runnable@processor-01.")
	})
	mux.HandleFunc("/blocking/", func(w http.ResponseWriter, r *http.Request) {
		answer, err := client.Get("http://127.0.0.1:" + remote + "/remote/" + strings.TrimPrefix(r.URL.Path, "/blocking/"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		text(w, string(body))
	})
	mux.HandleFunc("/remote/", func(w http.ResponseWriter, r *http.Request) {
		n := strings.TrimPrefix(r.URL.Path, "/remote/")
		seconds, err := strconv.ParseFloat(n, 64)
		if err != nil || seconds < 0 {
			http.Error(w, "n is no number", http.StatusBadRequest)
			return
		}
		time.Sleep(time.Duration(seconds * float64(time.Second)))
		text(w, "Hello, delayed by "+n+" seconds.")
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, mux))
}
