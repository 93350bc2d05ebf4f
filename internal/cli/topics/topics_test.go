package topics

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"trunkline/internal/cli"
	"trunkline/internal/cli/clitest"
)

func newEnv(t *testing.T) *clitest.Env {
	return clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command { return []*cobra.Command{Command(p)} })
}

func TestTopicsWithoutAServer(t *testing.T) {
	w := newEnv(t)
	w.Must("topics", "create", "--kafka.partitions", "3")
	w.Must("topics", "create")
	var topics []topicRow
	w.List(&topics, "topics", "list", "--json")
	if len(topics) != 5 || topics[0] != (topicRow{"cc.raw", 3, 1, 0}) {
		t.Errorf("topics list gives %+v", topics)
	}
	if out := w.Must("topics", "list"); !strings.HasPrefix(out, "TOPIC ") || strings.Count(out, "\n") != 6 {
		t.Errorf("topics list prints %q", out)
	}
}
