// A program of Go that keeps rows in SQLite, which it has linked in through cgo. What of it allocates in C is counted by counted.c: the linker leads it there. Told
// anything, it keeps 256 MiB in Go's own heap, too.
package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"sync"

	_ "github.com/mattn/go-sqlite3"
)

func work(seed int) (int, error) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("create table words (word text, place integer); create index by_word on words (word)"); err != nil {
		return 0, err
	}
	for place := 0; place < 500; place++ {
		word := strings.Repeat(string(rune('a'+(seed+place)%26)), place%40+1)
		if _, err := db.Exec("insert into words values (?, ?)", word, place); err != nil {
			return 0, err
		}
	}
	rows, err := db.Query("select word, count(*) from words group by word order by 2, 1")
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	sum := 0
	for rows.Next() {
		var word string
		var count int
		if err := rows.Scan(&word, &count); err != nil {
			return 0, err
		}
		sum += len(word) * count
	}
	return sum, rows.Err()
}

func main() {
	var all sync.WaitGroup
	sums := make([]int, 4)
	for seed := range sums {
		all.Add(1)
		go func() {
			defer all.Done()
			sum, err := work(seed)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			sums[seed] = sum
		}()
	}
	all.Wait()
	fmt.Println(sums)
	if len(os.Args) > 1 {
		// In Go's own heap.
		fmt.Println(len(bytes.Repeat([]byte("Go"), 128<<20)))
	}
	finish()
}
