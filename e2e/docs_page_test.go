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

// What a note can say. Without one a block does what its language lets it do.
const (
	noteNotRun    = "not run, "   // and why
	noteInterrupt = "Ctrl-C"      // its last command goes on until a reader ends it
	notePrinted   = "printed by " // a command whose output the block is
	noteChecked   = "checked by " // a command that takes the block on stdin and does not fail
	noteHelp      = "write one of these on the line above its fence:\n" +
		"  <!-- example: printed by COMMAND -->  the block is what the command prints\n" +
		"  <!-- example: checked by COMMAND -->  the command gets the block on stdin and must end with 0\n" +
		"  <!-- example: not run, REASON -->"
)

func (b block) text() string { return strings.Join(b.lines, "\n") + "\n" }

// does reports whether there is something to do with the block.
func (b block) does() error {
	for _, prefix := range []string{noteNotRun, notePrinted, noteChecked} {
		if rest, ok := strings.CutPrefix(b.note, prefix); ok && strings.TrimSpace(rest) != "" {
			return nil
		}
	}
	switch {
	case b.note != "" && b.note != noteInterrupt:
		return fmt.Errorf("nobody knows what the note %q means; %s", b.note, noteHelp)
	case b.language == "sh" || b.language == "console" || b.program():
		return nil
	case b.language == "json" && b.note == "":
		return b.parses()
	}
	return fmt.Errorf("nobody runs or checks this block of %q: make it sh, console, js, python, go or json, or %s", b.language, noteHelp)
}

// languages are those of programs: how a file is built and run, how a program begins,
// and the line that prints with a comment on its output.
var languages = map[string]struct {
	build, run, suffix string
	begins, prints     *regexp.Regexp
}{
	"js":     {"", "NODE_EXTRA_CA_CERTS=data/tls/cert.pem node ", ".mjs", regexp.MustCompile(`^import `), regexp.MustCompile(`console\.log\(.*\);? +// (.+)$`)},
	"python": {"", "python -u ", ".py", regexp.MustCompile(`^(import|from) `), regexp.MustCompile(`print\(.*\) +# (.+)$`)},
	"go":     {"go build -o bin/example ", "SSL_CERT_FILE=data/tls/cert.pem bin/example ", ".go", regexp.MustCompile(`^package `), regexp.MustCompile(`fmt\.Println\(.*\) +// (.+)$`)},
}

func (b block) program() bool {
	_, ok := languages[b.language]
	return ok
}

// begins reports whether the block begins a program; one that does not goes on
// with the program of the blocks before it.
func (b block) begins() bool { return languages[b.language].begins.MatchString(b.lines[0]) }

// parses wants a JSON text, or one on each line.
func (b block) parses() error {
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

// blocksOf parses a page. It reports every block that no test would run.
func blocksOf(text string) ([]block, error) {
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
			} else if err := b.does(); err != nil {
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

// commandsOf takes a console apart: "$ " begins a command, which goes on until
// the shell would not ask for more; the rest is output.
func commandsOf(b block) ([]command, error) {
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
		complaint, err := exec.Command("bash", "-n", "-c", text).CombinedOutput() // of a here-document without its end it only warns
		whole = !strings.HasSuffix(text, `\`) && err == nil && len(complaint) == 0
	}
	if !whole {
		return nil, fmt.Errorf("the last command of this console does not end, or is none: %s", commands[len(commands)-1].text)
	}
	return commands, nil
}

// printed returns the output that the program's comments promise.
func (b block) printed() []string {
	var lines []string
	for _, line := range b.lines {
		if found := languages[b.language].prints.FindStringSubmatch(line); found != nil {
			lines = append(lines, found[1])
		}
	}
	return lines
}
