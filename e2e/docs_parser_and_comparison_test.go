package e2e

import (
	"slices"
	"strings"
	"testing"
)

// TestDocumentBlocks checks that TestDocuments rejects pages with blocks that no test would run.
func TestDocumentBlocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, page, fault string }{
		{"a shell's", "```sh\ntrue\n```", ""},
		{"JSON, whole", "```json\n{\"a\":\n1}\n```", ""},
		{"JSON, by line", "```json\n{\"a\":1}\n{}\n```", ""},
		{"no JSON", "```json\n{\"a\":1}\n{…}\n```", ":2: line 3 is no JSON"},
		{"settings", "text\n\n```yaml\na: 1\n```", ":4: no test runs or checks this block of \"yaml\""},
		{"settings that are checked", "<!-- example: checked by cat -->\n```yaml\na: 1\n```", ""},
		{"no language", "```\na\n```", ":2: no test runs or checks this block of \"\""},
		{"not run", "<!-- example: not run, it needs the moon -->\n```sh\nfly\n```", ""},
		{"not run, for no reason", "<!-- example: not run,  -->\n```sh\nfly\n```", "unknown note"},
		{"a note that is mistyped", "<!-- example: ctrl-c -->\n```sh\ntrue\n```", "unknown note"},
		{"a note without a block", "<!-- example: Ctrl-C -->\n\n```sh\ntrue\n```", "is not on the line above a fence"},
		{"an empty one", "```sh\n```", ":2: an empty block"},
		{"one that does not end", "```sh\ntrue\n", "does not end"},
		{"in a list", "- so:\n\n  ```sh\n  true\n  ```\n", ""},
	} {
		_, err := parseBlocks(c.page)
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.fault)
		}
	}
}

func TestDocumentCommands(t *testing.T) {
	t.Parallel()
	got, err := parseCommands(block{line: 7, lines: strings.Split(`$ echo "a
b" \
    c
a
$ cat <<END
$ no command
END
$ true`, "\n")})
	if err != nil {
		t.Fatal(err)
	}

	want := []command{{7, "echo \"a\nb\" \\\n    c", []string{"a"}}, {11, "cat <<END\n$ no command\nEND", nil},
		{14, "true", nil}}
	if !slices.EqualFunc(got, want, func(a, b command) bool {
		return a.line == b.line && a.text == b.text && slices.Equal(a.output, b.output)
	}) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}

	for _, lines := range [][]string{{"ls"}, {`$ echo "a`}} {
		if _, err := parseCommands(block{lines: lines}); err == nil {
			t.Errorf("%q is taken", lines)
		}
	}
}

// TestDocumentShapes checks which differences from a page are allowed.
func TestDocumentShapes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shown, came string
		same        bool
	}{
		{`{"id":"cc_evt_1795193617905000451","accepted":13}`, `{"id":"cc_evt_1795193677766000643","accepted":13}`,
			true},
		{`{"accepted":13}`, `{"accepted":1}`, false},
		{`{"state":"ended"}`, `{"state":"bridged"}`, false},
		{`{"state":"ended"}`, `{"state":"ended","cause":"USER_BUSY"}`, false},
		{`{"a":[{"b":1},…],"c":…}`, `{"a":[{"b":1},{"b":2}],"c":7}`, true},
		{"{\"a\":1,\n  \"b\": 2}", `{"a": 1, "b": 2}`, true},
		{`16:49:37  AGENT_LOGIN  agent_id=2001`, `01:02:03 AGENT_LOGIN agent_id=2001`, true},
		{`16:49:37  AGENT_LOGIN  agent_id=2001`, `01:02:03 AGENT_LOGIN agent_id=2002`, false},
		{`listen: :9443`, `listen: 127.0.0.1:31234`, true},
		{`"salt":"o0QKSvaEPEyFzGIDfdoulQ=="`, `"salt":"abcdefghijklmnopqrstuv=="`, true},
		{"a\nb", "b\na", true},
		{"a", "a\nb", false},
		{"a\n…", "a\nb", true},
		{"", "b", false},
	} {
		var shown []string
		if c.shown != "" {
			shown = strings.Split(c.shown, "\n")
		}

		err := compareOutput(shown, strings.Split(c.came, "\n"), false)
		if (err == nil) != c.same {
			t.Errorf("%q and %q: %v", c.shown, c.came, err)
		}
	}
}
