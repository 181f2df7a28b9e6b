/*
Copyright The kubelet-eviction Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Command hog uses up a resource of a node at a steady rate, for tests and
// demonstrations. It runs inside a container:
//
//	hog memory -rate 100 -limit 4096   MiB a second, MiB in all
//	hog disk -rate 100 -limit 4096 -path /data
//	hog inodes -rate 1000 -limit 100000 -path /data
//	hog pids -rate 50 -limit 2000
//	hog thrash -rate 50 -limit 256 -path /data   a file of so many MiB, read over and over
//
// When the limit is reached it holds what it has until it is killed. On SIGTERM
// it exits with -exit, 143 by default, as a program does that catches nothing.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// tick is how often a hog takes its share: often enough for a smooth slope.
const tick = 50 * time.Millisecond

// takers take n more units: MiB, files or processes. What they take is kept.
var takers = map[string]func(path string) func(n int) error{
	"memory": takeMemory,
	"thrash": takeThrash,
	"disk":   takeDisk,
	"inodes": takeInodes,
	"pids":   takePIDs,
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "sleep" {
		// A process that does nothing, for the pids hog.
		time.Sleep(24 * time.Hour)
		return
	}
	if len(os.Args) < 2 || takers[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: hog memory|disk|inodes|pids|thrash [-rate N] [-limit N] [-path FOLDER] [-exit CODE]")
		os.Exit(2)
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	rate := flags.Int("rate", 100, "MiB, files or processes a second")
	limit := flags.Int("limit", 1<<30, "MiB, files or processes in all")
	path := flags.String("path", "/tmp", "folder to write to")
	linger := flags.Duration("linger", 0, "how long it takes to end after SIGTERM")
	exit := flags.Int("exit", 128+int(syscall.SIGTERM), "exit code on SIGTERM")
	stamp := flags.String("stamp", "", "file that gets the time of SIGTERM, in nanoseconds of Unix time")
	_ = flags.Parse(os.Args[2:]) // ExitOnError

	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	take := takers[os.Args[1]](*path)
	begin, taken := time.Now(), 0
	for {
		due := min(*limit, int(float64(*rate)*time.Since(begin).Seconds()))
		if due > taken {
			if err := take(due - taken); err != nil {
				fmt.Fprintln(os.Stderr, "hog:", err)
				// What it has it holds: a full disk is what some tests want.
			}
			taken = due
		}
		select {
		case <-terminated:
			if *stamp != "" {
				if err := os.WriteFile(*stamp, []byte(strconv.FormatInt(time.Now().UnixNano(), 10)), 0o600); err != nil {
					fmt.Fprintln(os.Stderr, "hog:", err)
				}
			}
			time.Sleep(*linger)
			os.Exit(*exit)
		case <-time.After(tick):
		}
	}
}

func takeMemory(string) func(int) error {
	var held [][]byte
	return func(mebibytes int) error {
		for range mebibytes {
			block := make([]byte, 1<<20)
			for i := 0; i < len(block); i += os.Getpagesize() {
				block[i] = 1
			}
			held = append(held, block)
		}
		return nil
	}
}

func takeDisk(path string) func(int) error {
	block := make([]byte, 1<<20)
	return func(mebibytes int) error {
		file, err := os.OpenFile(filepath.Join(path, "hog"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer file.Close()
		for range mebibytes {
			if _, err := file.Write(block); err != nil {
				return err
			}
		}
		return file.Sync()
	}
}

// takeThrash writes a file, and keeps reading what there is of it as mapped memory:
// beyond its limit of memory every page that it reads pushes out one that it wants.
func takeThrash(path string) func(int) error {
	write := takeDisk(path)
	reading := make(chan struct{}, 1)
	go func() {
		for range reading {
			for sum := byte(0); readMapped(filepath.Join(path, "hog"), &sum); {
			}
		}
	}()
	return func(mebibytes int) error {
		err := write(mebibytes)
		select {
		case reading <- struct{}{}:
		default:
		}
		return err
	}
}

// readMapped reads a byte of each page of a file, and adds them to sum, so that the
// compiler does not leave that out; false is when it cannot.
func readMapped(path string, sum *byte) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	mapped, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hog:", err)
		return false
	}
	for i := 0; i < len(mapped); i += os.Getpagesize() {
		*sum += mapped[i]
	}
	return syscall.Munmap(mapped) == nil
}

func takeInodes(path string) func(int) error {
	made := 0
	return func(files int) error {
		for range files {
			made++
			if err := os.WriteFile(filepath.Join(path, fmt.Sprintf("hog-%d", made)), nil, 0o600); err != nil {
				return err
			}
		}
		return nil
	}
}

func takePIDs(string) func(int) error {
	return func(processes int) error {
		for range processes {
			if err := exec.Command("/hog", "sleep").Start(); err != nil {
				return err
			}
		}
		return nil
	}
}
