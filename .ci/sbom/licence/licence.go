// Package licence finds the licence texts of the modules that a Go program is made of.
package licence

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// Module is a module of a program with its licence texts.
type Module struct {
	Path, Version, Sum string
	SPDX               []string // identifiers of the licences
	Texts              []Text
}

// Text is one file with a licence or a notice.
type Text struct{ File, Content string }

// Of returns the modules that the linker recorded in a program, and the standard library. The
// modules' files are those of the repository in the folder. It is an error if a module has no
// licence, or one that is not known.
func Of(program, repository string) ([]Module, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("reading the modules of %s: %w", program, err)
	}

	folders, err := moduleFolders(repository)
	if err != nil {
		return nil, err
	}

	version := strings.TrimPrefix(info.GoVersion, "go")
	goRoot := runtime.GOROOT()
	if root, err := exec.Command("go", "env", "GOROOT").Output(); err == nil {
		goRoot = strings.TrimSpace(string(root))
	}

	modules := []Module{{Path: "std", Version: version}}
	folders["std@"+version] = goRoot
	for _, module := range info.Deps {
		modules = append(modules, newModule(module))
	}

	var problems error
	for i := range modules {
		if err := modules[i].read(folders[modules[i].Path+"@"+modules[i].Version]); err != nil {
			problems = errors.Join(problems, fmt.Errorf("%s %s: %w", modules[i].Path, modules[i].Version, err))
		}
	}

	return modules, problems
}

func newModule(module *debug.Module) Module {
	if module.Replace != nil {
		module = module.Replace
	}
	return Module{Path: module.Path, Version: module.Version, Sum: module.Sum}
}

// moduleFolders returns the folders of the repository's modules, by path@version.
func moduleFolders(repository string) (map[string]string, error) {
	command := exec.Command("go", "list", "-m", "-json", "all")
	command.Dir, command.Stderr = repository, os.Stderr
	listed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the modules of %s: %w", repository, err)
	}

	folders := make(map[string]string)
	for list := json.NewDecoder(bytes.NewReader(listed)); ; {
		var module struct {
			Path, Version, Dir string
			Replace            *struct{ Path, Version, Dir string }
		}
		err := list.Decode(&module)
		if errors.Is(err, io.EOF) {
			return folders, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing the modules of %s: %w", repository, err)
		}

		if r := module.Replace; r != nil {
			module.Path, module.Version, module.Dir = r.Path, r.Version, r.Dir
		}

		folders[module.Path+"@"+module.Version] = module.Dir
	}
}

var fileName = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice|patents|copyright)`)

// read reads the licences and notices in the module's folder. A licence of a module in a
// repository of several can be in the folder above, which the module cache does not have.
func (m *Module) read(folder string) error {
	if folder == "" {
		return errors.New("its files are not in the module cache: go mod download")
	}

	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}

	for _, entry := range entries {
		if entry.IsDir() || !fileName.MatchString(entry.Name()) || strings.HasSuffix(entry.Name(), ".go") {
			continue
		}

		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}

		m.Texts = append(m.Texts, Text{entry.Name(), strings.ReplaceAll(string(content), "\r\n", "\n")})
	}

	for _, text := range m.Texts {
		for _, id := range identify(text.Content) {
			if !slices.Contains(m.SPDX, id) {
				m.SPDX = append(m.SPDX, id)
			}
		}
	}

	if len(m.SPDX) == 0 {
		return fmt.Errorf("it has no licence that is known; files: %d", len(m.Texts))
	}

	return nil
}

// known are sentences that a licence has and no other.
var known = []struct {
	id      string
	phrases []string
}{
	{"Apache-2.0", []string{"apache license version 2.0, january 2004"}},
	{"MPL-2.0", []string{"mozilla public license version 2.0"}},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation"}},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted",
		"appear in all copies"}},
	{"ISC", []string{"permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted",
		"appear in all copies"}},
	{"BSD-3-Clause", []string{"redistributions of source code must retain the above copyright", "neither the name"}},
	{"BSD-3-Clause",
		[]string{"redistributions of source code must retain the above copyright", "may not be used to endorse"}},
	{"BSD-2-Clause", []string{"redistributions of source code must retain the above copyright"}},
	{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}},
	{"CC0-1.0", []string{"cc0 1.0 universal"}},
}

// identify returns the SPDX identifiers of the licences in a text.
func identify(text string) (ids []string) {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, licence := range known {
		missing := slices.ContainsFunc(licence.phrases,
			func(phrase string) bool { return !strings.Contains(text, phrase) })
		if missing || slices.Contains(ids, licence.id) ||
			licence.id == "BSD-2-Clause" && slices.Contains(ids, "BSD-3-Clause") {
			continue
		}

		ids = append(ids, licence.id)
	}

	return ids
}
