package entitytag

import "testing"

func TestTags(t *testing.T) {
	tag := Of("a", 1)
	if len(tag) != 34 || tag != Of("a", 1) || tag == Of("a1") || tag == Of("a", "1") || tag == Of("a", 2) {
		t.Errorf("tag %s", tag)
	}

	for header, want := range map[string]bool{
		tag: true, "*": true, " * ": true, `"x", ` + tag: true, "W/" + tag: false, `"x"`: false, "": false,
		tag[1:]: false,
	} {
		if Matches(header, tag) != want {
			t.Errorf("%s: not %v", header, want)
		}
		if weak := header == "W/"+tag; NotModified(header, tag) != (want || weak) {
			t.Errorf("%s: modified", header)
		}
		if header != "" && (Require(header, tag) == nil) != want {
			t.Errorf("%s: required", header)
		}
	}

	if Require("", tag) != nil {
		t.Error("no If-Match is a condition")
	}
}
