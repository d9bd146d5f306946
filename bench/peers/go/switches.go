// SPDX-License-Identifier: Apache-2.0

// switches: what a goroutine costs to switch to (runtime.Gosched between two on one processor) and to start and end.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

func main() {
	const rounds = 5_000_000
	runtime.GOMAXPROCS(1)
	var both sync.WaitGroup
	both.Add(2)
	began := time.Now()
	for i := 0; i < 2; i++ {
		go func() {
			for n := 0; n < rounds; n++ {
				runtime.Gosched()
			}
			both.Done()
		}()
	}
	both.Wait()
	switching := float64(time.Since(began)) / (2 * rounds)
	began = time.Now()
	var one sync.WaitGroup
	for n := 0; n < rounds/5; n++ {
		one.Add(1)
		go one.Done()
		one.Wait()
	}
	fmt.Printf("{\"switch_ns\":%.1f,\"spawn_ns\":%.1f}\n", switching, float64(time.Since(began))/(rounds/5))
}
