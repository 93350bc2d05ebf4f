package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// pageRun executes one page from top to bottom.
type pageRun struct {
	page             string // docs/api.md
	blocks           []block
	replaceAddresses *strings.Replacer // of the page's addresses with those of this test
	shell            *shell
	dir              string                  // current folder of the shell; the page's "folder of the repository"
	programs         map[string]*pageProgram // current program, by language
}

// pageProgram is a program that the blocks of the page form.
type pageProgram struct {
	lines     []string // padded so that line numbers are those of the page
	printed   []string // what the page says that it prints
	interrupt bool     // it runs until Ctrl-C
	line      int      // of its first block
}

// runAll executes the blocks of the page in order. It runs a program after its last block: when
// the next program of the language begins, or at the end of the page.
func (s *pageRun) runAll(t *testing.T) {
	for _, b := range s.blocks {
		if strings.HasPrefix(b.note, noteNotRun) {
			continue
		}
		if line, err := s.runBlock(b); err != nil {
			t.Fatalf("%s:%d: %v", s.page, line, err)
		}
	}

	for _, language := range slices.Sorted(maps.Keys(languages)) {
		if line, err := s.finishProgram(language); err != nil {
			t.Fatalf("%s:%d: the program that begins here: %v", s.page, line, err)
		}
	}
}

// runBlock executes one block. Errors name its line.
func (s *pageRun) runBlock(b block) (line int, err error) {
	if text, ok := strings.CutPrefix(b.note, notePrinted); ok {
		return b.line, s.runCommand(command{text: text, output: b.lines}, true)
	}

	if text, ok := strings.CutPrefix(b.note, noteChecked); ok {
		file := filepath.Join(s.shell.steps, "block")
		if err := os.WriteFile(file, []byte(b.text()), 0o600); err != nil {
			return b.line, err
		}
		return b.line, s.runCommand(command{text: "{ " + text + "; } <" + file, output: []string{elided}}, true)
	}

	switch b.language {
	case "sh":
		if b.note == noteInterrupt {
			return b.line, s.runUntilShown(command{text: strings.TrimSpace(b.text())})
		}
		return b.line, s.runCommand(command{text: b.text(), output: []string{elided}}, true)
	case "console":
		commands, err := parseCommands(b)
		if err != nil {
			return b.line, err
		}

		for i, c := range commands {
			if b.note == noteInterrupt && i == len(commands)-1 {
				return c.line, s.runUntilShown(c)
			}

			asked := i+1 < len(commands) && commands[i+1].text == "echo $?"
			if err := s.runCommand(c, !asked); err != nil {
				return c.line, fmt.Errorf("$ %s\n%w", c.text, err)
			}
		}
	default:
		if b.isProgram() {
			return s.appendToProgram(b)
		}
	}

	return b.line, nil
}

// runCommand runs one command to its end and compares its output.
func (s *pageRun) runCommand(c command, mustSucceed bool) error {
	code, answer, err := s.shell.run(s.replaceAddresses.Replace(c.text))
	if err != nil {
		return fmt.Errorf("%w; output so far\n\t%s", err, strings.Join(answer.lines(), "\n\t"))
	}

	if mustSucceed && code != 0 {
		return fmt.Errorf("exit code %d, output\n\t%s", code, strings.Join(answer.lines(), "\n\t"))
	}

	compare := func() error { return compareOutput(c.output, answer.lines(), s.shell.backgroundPrograms) }
	err = compare()
	if err != nil && s.shell.backgroundPrograms { // background programs may print later
		for began := time.Now(); err != nil && time.Since(began) < patience; err = compare() {
			time.Sleep(20 * time.Millisecond)
		}
	}

	return err
}

// runUntilShown runs a command that does not end until it has printed the page's output.
func (s *pageRun) runUntilShown(c command) error {
	if len(c.output) == 0 {
		return fmt.Errorf("a command that runs until Ctrl-C must have output on the page")
	}
	return s.shell.runUntil(s.replaceAddresses.Replace(c.text),
		func(lines []string) error { return compareOutput(c.output, lines, true) })
}

// appendToProgram appends a block to the current program of its language.
func (s *pageRun) appendToProgram(b block) (line int, err error) {
	if b.startsProgram() {
		if line, err := s.finishProgram(b.language); err != nil {
			return line, fmt.Errorf("the program that begins here: %w", err)
		}
		s.programs[b.language] = &pageProgram{line: b.line}
	}

	p := s.programs[b.language]
	if p == nil {
		return b.line, fmt.Errorf("a program begins with an import, as the first block of %s on this page must",
			b.language)
	}

	for len(p.lines) < b.line-1 {
		p.lines = append(p.lines, "")
	}

	p.lines = append(p.lines, b.lines...)
	p.printed = append(p.printed, b.expectedOutput()...)
	p.interrupt = p.interrupt || b.note == noteInterrupt

	return b.line, nil
}

// finishProgram runs the current program of a language.
func (s *pageRun) finishProgram(language string) (line int, err error) {
	p := s.programs[language]
	if p == nil {
		return 0, nil
	}

	delete(s.programs, language)
	file := strings.ReplaceAll(strings.TrimSuffix(s.page, ".md"), "/", "-") + languages[language].suffix
	source := s.replaceAddresses.Replace(strings.Join(p.lines, "\n") + "\n")
	if err := os.WriteFile(filepath.Join(s.dir, file), []byte(source), 0o600); err != nil {
		return p.line, err
	}

	if build := languages[language].build; build != "" {
		if err := s.runCommand(command{text: build + file, output: []string{elided}}, true); err != nil {
			return p.line, err
		}
	}

	run := command{text: languages[language].run + file, output: p.printed}
	if p.interrupt {
		return p.line, s.runUntilShown(run)
	}

	run.output = append(run.output, elided) // lines without a comment may print too
	return p.line, s.runCommand(run, true)
}
