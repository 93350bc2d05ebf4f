package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(log.Ltime)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := benchmarks(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func benchmarks(ctx context.Context) error {
	root := flag.String("root", "../..", "folder of the tree")
	revision := flag.String("old", "eb5c4dd", "the earlier build")
	rounds := flag.Int("rounds", 2, "times that each build runs")
	rows := flag.String("rows", ".",
		"regular expression of what to measure: names of scenarios, go:FOLDER of Go benchmarks")
	kept := flag.String("results", "bin/benchmarks.json", "file with the figures of all runs, below the root; empty: none")
	page := flag.String("page", "docs/benchmarks.md", "page with the tables, below the root; empty: print them")
	flag.Parse()

	wanted, err := regexp.Compile(*rows)
	if err != nil {
		return fmt.Errorf("-rows: %w", err)
	}

	tree, err := filepath.Abs(*root)
	if err != nil {
		return err
	}

	all := &results{Rows: map[string]*row{}}
	save := func() error { return nil }
	if *kept != "" {
		file := filepath.Join(tree, *kept)
		all, err = readResults(file)
		if err != nil {
			return err
		}
		save = func() error { return all.write(file) }
	}

	m, oldTree, err := build(ctx, tree, *revision)
	if m != nil {
		defer m.remove(tree, oldTree)
	}
	if err != nil {
		return err
	}

	all.Date, all.Old, all.Machine = time.Now().Format(time.DateOnly), *revision, describeMachine()
	all.Revision, err = output(ctx, tree, "git", "describe", "--tags", "--always", "--dirty")
	if err != nil {
		return err
	}

	failed := m.measureAll(ctx, all, wanted, *rounds, tree, oldTree, save)
	if *page == "" {
		fmt.Print(tables(all))
		return failed
	}
	return errors.Join(failed, writePage(filepath.Join(tree, *page), all))
}
