package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
)

// block is a fenced block of a page.
type block struct {
	line     int // of its first line within the page, from 1
	language string
	lines    []string
	note     string // of the comment before it: <!-- example: NOTE -->
}

// The notes. Without one, the language of a block determines how it is tested.
const (
	noteNotRun    = "not run, "   // followed by the reason
	noteInterrupt = "Ctrl-C"      // its last command runs until a reader interrupts it
	notePrinted   = "printed by " // followed by the command whose output the block shows
	noteChecked   = "checked by " // followed by a command that must accept the block on stdin
	noteHelp      = "write one of these on the line above its fence:\n" +
		"  <!-- example: printed by COMMAND -->  the block is what the command prints\n" +
		"  <!-- example: checked by COMMAND -->  the command gets the block on stdin and must end with 0\n" +
		"  <!-- example: not run, REASON -->"
)

func (b block) text() string { return strings.Join(b.lines, "\n") + "\n" }

// checkTestable reports whether the block can be tested.
func (b block) checkTestable() error {
	for _, prefix := range []string{noteNotRun, notePrinted, noteChecked} {
		if rest, ok := strings.CutPrefix(b.note, prefix); ok && strings.TrimSpace(rest) != "" {
			return nil
		}
	}

	switch {
	case b.note != "" && b.note != noteInterrupt:
		return fmt.Errorf("unknown note %q; %s", b.note, noteHelp)
	case b.language == "sh" || b.language == "console" || b.isProgram():
		return nil
	case b.language == "json" && b.note == "":
		return b.checkJSON()
	}

	return fmt.Errorf("no test runs or checks this block of %q: make it sh, console, js, python, go or json, or %s",
		b.language, noteHelp)
}

// languages describes how to build and run programs of a language, how a program begins, and the
// regular expression of a line that prints, with its output in a comment.
var languages = map[string]struct {
	build, run, suffix string
	begins, prints     *regexp.Regexp
}{
	"js": {"", "NODE_EXTRA_CA_CERTS=data/tls/cert.pem node ", ".mjs", regexp.MustCompile(`^import `),
		regexp.MustCompile(`console\.log\(.*\);? +// (.+)$`)},
	"python": {"", "python -u ", ".py", regexp.MustCompile(`^(import|from) `),
		regexp.MustCompile(`print\(.*\) +# (.+)$`)},
	"go": {"go build -o bin/example ", "SSL_CERT_FILE=data/tls/cert.pem bin/example ", ".go",
		regexp.MustCompile(`^package `), regexp.MustCompile(`fmt\.Println\(.*\) +// (.+)$`)},
}

func (b block) isProgram() bool {
	_, ok := languages[b.language]
	return ok
}

// startsProgram reports whether the block begins a program; otherwise it continues the program of the
// preceding blocks.
func (b block) startsProgram() bool { return languages[b.language].begins.MatchString(b.lines[0]) }

// checkJSON checks that the text is JSON, or has JSON on each line.
func (b block) checkJSON() error {
	if json.Valid([]byte(b.text())) {
		return nil
	}
	for i, line := range b.lines {
		if !json.Valid([]byte(line)) {
			return fmt.Errorf("line %d is no JSON: %s", b.line+i, line)
		}
	}
	return nil
}

var (
	notePattern  = regexp.MustCompile(`^\s*<!-- example: (.*?) -->\s*$`)
	fencePattern = regexp.MustCompile("^( *)```(\\S*)\\s*$")
)

// parseBlocks parses a page. It reports every block that no test would run.
func parseBlocks(text string) ([]block, error) {
	var blocks []block
	var faults []error
	note, indent, within := "", "", false

	for i, line := range strings.Split(text, "\n") {
		fence := fencePattern.FindStringSubmatch(line)
		switch {
		case fence != nil && !within:
			blocks = append(blocks, block{line: i + 2, language: fence[2], note: note})
			note, indent, within = "", fence[1], true
		case fence != nil:
			within = false
			if b := blocks[len(blocks)-1]; len(b.lines) == 0 {
				faults = append(faults, fmt.Errorf(":%d: an empty block", b.line))
			} else if err := b.checkTestable(); err != nil {
				faults = append(faults, fmt.Errorf(":%d: %w", b.line, err))
			}
		case within:
			last := &blocks[len(blocks)-1]
			last.lines = append(last.lines, strings.TrimPrefix(line, indent))
		case note != "":
			faults = append(faults, fmt.Errorf(":%d: the note %q is not on the line above a fence", i, note))
			note = ""
		}

		if found := notePattern.FindStringSubmatch(line); found != nil && !within {
			note = found[1]
		}
	}

	if within {
		faults = append(faults, errors.New(": its last block does not end"))
	}

	return blocks, errors.Join(faults...)
}

// command is a shell command of a page with its expected output.
type command struct {
	line   int // within the page
	text   string
	output []string
}

// parseCommands parses a console block: "$ " begins a command, which continues while the shell would
// ask for more input; the rest is output.
func parseCommands(b block) ([]command, error) {
	var commands []command
	whole := true
	for i, line := range b.lines {
		typed, begins := strings.CutPrefix(line, "$ ")
		switch {
		case begins && whole:
			commands = append(commands, command{line: b.line + i, text: typed})
		case len(commands) == 0:
			return nil, fmt.Errorf(`a console begins with "$ " and a command, not with %q`, line)
		case !whole:
			commands[len(commands)-1].text += "\n" + line
		default:
			last := &commands[len(commands)-1]
			last.output = append(last.output, line)
			continue
		}

		text := commands[len(commands)-1].text
		// bash only warns of a here-document without its end
		complaint, err := exec.Command("bash", "-n", "-c", text).CombinedOutput()
		whole = !strings.HasSuffix(text, `\`) && err == nil && len(complaint) == 0
	}

	if !whole {
		return nil, fmt.Errorf("the last command of this console does not end, or is none: %s",
			commands[len(commands)-1].text)
	}

	return commands, nil
}

// expectedOutput returns the output that the program's comments announce.
func (b block) expectedOutput() []string {
	var lines []string
	for _, line := range b.lines {
		if found := languages[b.language].prints.FindStringSubmatch(line); found != nil {
			lines = append(lines, found[1])
		}
	}
	return lines
}
