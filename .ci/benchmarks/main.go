package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
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

// measureAll measures what is wanted. It goes on after a failure, and returns all of them.
func (m *machine) measureAll(ctx context.Context, all *results, wanted *regexp.Regexp, rounds int, tree, oldTree string,
	save func() error) (failed error) {
	for _, s := range scenarios() {
		if !wanted.MatchString(s.name) || ctx.Err() != nil {
			continue
		}

		row := all.begin()
		failed = errors.Join(failed, m.measureScenario(ctx, row, s, rounds))
		all.end(ctx, s.name, row)
		failed = errors.Join(failed, save())
	}

	trees := map[string]string{ours: tree, old: oldTree}
	for _, g := range goBenchmarks() {
		if !wanted.MatchString(g.name()) || ctx.Err() != nil {
			continue
		}

		row := all.begin()
		for round := range rounds {
			for _, build := range g.builds() {
				log.Printf("round %d of %d: %s, %s", round+1, rounds, g.name(), build)
				values, err := m.runGo(ctx, trees[build], build, g)
				if err != nil {
					log.Print(err)
					failed = errors.Join(failed, err)
				}
				for name, value := range values {
					row.add(name, build, value)
				}
			}
		}
		all.end(ctx, g.name(), row)
		failed = errors.Join(failed, save())
	}

	return failed
}

func (m *machine) measureScenario(ctx context.Context, row *row, s scenario, rounds int) (failed error) {
	for round := range rounds {
		builds := slices.Clone(s.builds)
		if round%2 == 1 {
			slices.Reverse(builds) // no build is always the last
		}

		for _, build := range builds {
			r, err := m.run(ctx, s, build)
			if err != nil {
				err = fmt.Errorf("%s, %s: %w", s.name, build, err)
				log.Print(err)
				failed = errors.Join(failed, err)
				continue
			}

			text := ""
			for _, f := range s.figures {
				value := f.of(r)
				row.add(f.unit, build, value)
				text += fmt.Sprintf(", %s %s", short(value), f.unit)
			}
			log.Printf("round %d of %d: %s, %s%s", round+1, rounds, s.name, build, text)
		}
	}
	return failed
}

// build builds this tree, the old one and Centrifugo.
func build(ctx context.Context, tree, revision string) (m *machine, oldTree string, err error) {
	work, err := os.MkdirTemp("", "trunkline-benchmarks-")
	if err != nil {
		return nil, "", err
	}

	err = os.Setenv("GOFLAGS", "-trimpath -buildvcs=false")
	if err != nil {
		return nil, "", err
	}

	oldTree = filepath.Join(work, "old-tree")
	at := func(name string) string { return filepath.Join(work, name) }
	m = &machine{work: work, benchProgram: at("trunkline-bench"),
		programs: map[string]string{ours: at("ours"), old: at("old"), centrifugo: at("centrifugo")}}

	steps := []struct {
		folder string
		words  string
	}{
		{tree, "git worktree add --quiet --detach " + oldTree + " " + revision},
		{tree, "go build -o " + m.programs[ours] + " ./cmd/trunkline"},
		{tree, "go build -o " + m.benchProgram + " ./cmd/trunkline-bench"},
		{oldTree, "go build -tags grpcnotrace -o " + m.programs[old] + " ./cmd/trunkline"},
		{filepath.Join(tree, ".ci/benchmarks"),
			"go build -o " + m.programs[centrifugo] + " github.com/centrifugal/centrifugo/v6"},
	}
	for _, step := range steps {
		log.Print(step.words)
		_, err := output(ctx, step.folder, strings.Fields(step.words)...)
		if err != nil {
			return m, oldTree, err
		}
	}

	return m, oldTree, nil
}

// remove removes the files of this run.
func (m *machine) remove(tree, oldTree string) {
	_, err := output(context.Background(), tree, "git", "worktree", "remove", "--force", oldTree)
	err = errors.Join(err, os.RemoveAll(m.work))
	if err != nil {
		log.Print(err)
	}
}

// output runs a program and returns what it prints.
func output(ctx context.Context, folder string, words ...string) (string, error) {
	command := exec.CommandContext(ctx, words[0], words[1:]...)
	command.Dir = folder
	out, err := command.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return "", fmt.Errorf("%s: %w", strings.Join(words, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

func describeMachine() string {
	model := "unknown processor"
	data, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(data)) {
			name, text, found := strings.Cut(line, ":")
			if found && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(text)
			}
		}
	}
	return fmt.Sprintf("%s, %d cores, %s", model, runtime.NumCPU(), runtime.Version())
}
