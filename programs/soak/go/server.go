// net/http with keep-alive, in Go, whose heap is not malloc's: server --mode MODE --port N.
//
// clean       makes strings and drops them
// slice       appends a block of 256 bytes to a slice of the package, never to be read again
// goroutines  starts a goroutine that waits for ever
// small       adds a node of 24 bytes to a list: below what resident memory can show
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
)

type node struct {
	next  *node
	words [2]uint64
}

var (
	guard   sync.Mutex
	history [][]byte
	list    *node
	never   = make(chan struct{})
)

var modes = map[string]func(){
	"clean": func() {},
	"slice": func() {
		guard.Lock()
		history = append(history, make([]byte, 256)) // LEAK go-slice
		guard.Unlock()
	},
	"goroutines": func() {
		go func() { <-never }() // LEAK go-goroutines
	},
	"small": func() {
		guard.Lock()
		list = &node{next: list} // LEAK go-small
		guard.Unlock()
	},
}

func option(name, fallback string) string {
	for at, word := range os.Args {
		if word == name && at+1 < len(os.Args) {
			return os.Args[at+1]
		}
	}
	return fallback
}

func environment(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

func main() {
	mode := option("--mode", "clean")
	work, known := modes[mode]
	if !known {
		fmt.Fprintln(os.Stderr, "there is no mode", mode)
		os.Exit(2)
	}
	answer := func(writer http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
		work()
		words := make([]string, 20)
		for at := range words {
			words[at] = fmt.Sprint(at, request.URL.Path)
		}
		fmt.Fprintln(writer, len(strings.Join(words, " ")))
	}
	address := net.JoinHostPort(environment("HOST", "127.0.0.1"), option("--port", environment("PORT", "3030")))
	if err := http.ListenAndServe(address, http.HandlerFunc(answer)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
