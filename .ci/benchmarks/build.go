package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

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
