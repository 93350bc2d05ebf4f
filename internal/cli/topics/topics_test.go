package topics

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"trunkline/internal/cli"
	"trunkline/internal/cli/clitest"
	"trunkline/internal/kafka"
)

func newEnv(t *testing.T) *clitest.Env {
	return clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command { return []*cobra.Command{Command(p)} })
}

func TestTopicsWithoutAServer(t *testing.T) {
	w := newEnv(t)
	w.Fails(cli.ExitFailed, "data_dir "+w.Dir+" has no embedded broker", "topics", "list")
	w.Must("topics", "create", "--kafka.partitions", "3")
	w.Must("topics", "create")
	var topics []topicRow
	w.List(&topics, "topics", "list", "--json")
	specified := len(kafka.Specs(3))
	if len(topics) != specified || topics[0] != (topicRow{"cc.raw", 3, 1, 0}) {
		t.Errorf("topics list gives %+v", topics)
	}
	if out := w.Must("topics", "list"); !strings.HasPrefix(out, "TOPIC ") || strings.Count(out, "\n") != specified+1 {
		t.Errorf("topics list prints %q", out)
	}
	w.Must("topics", "create", "--audit.topic")
	w.List(&topics, "topics", "list", "--json", "--audit.topic")
	if len(topics) != specified+1 || topics[specified] != (topicRow{"audit", 1, 1, 0}) {
		t.Errorf("with the audit topic, topics list gives %+v", topics)
	}
}
