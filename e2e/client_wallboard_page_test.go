package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"trunkline/internal/freeport"
)

// TestWallboard opens the page of clients/js in a browser and kills the server twice.
func TestWallboard(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]
	address := freeport.Address(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}

	cmd := exec.Command(tool(t, "node"), "../clients/js/serve.mjs", n.url, port)
	cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+filepath.Join(n.dir, "tls", "cert.pem"))
	pages, err := startChild(cmd)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = pages.process.Kill()
		<-pages.exited
	})

	eventually(t, "the pages", func() error {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return err
	})

	p := newPage(t)
	p.open(t, "http://"+address+"/wallboard.html")
	postLogin := func(agent int) {
		body := fmt.Sprintf(`{"type":"AGENT_LOGIN","account_id":"demo","data":{"agent_id":"%d"}}`, agent)
		c.ingestNode.postAccepted(t, c.key, "generic", typeJSON, body, 1)
	}

	awaitShown := func(agents ...int) {
		t.Helper()
		for _, agent := range agents {
			p.awaitTrue(t, fmt.Sprintf("agent %d", agent),
				fmt.Sprintf(`document.getElementById("agents").innerText.includes("%d: available since")`, agent))
		}
	}

	postLogin(2001) // before the snapshot
	p.mustEval(t, `{ const form = document.getElementById("login"); form.password.value = `+jsString(
		password)+`; form.requestSubmit(); }`, nil)
	p.awaitTrue(t, "the connection", `document.getElementById("connection").innerText === "connected"`)
	awaitShown(2001)

	for agent := 2010; agent <= 2020; agent += 10 {
		postLogin(agent) // may arrive late
		n.kill(t)
		p.awaitTrue(t, "the page to notice", `document.getElementById("connection").innerText !== "connected"`)
		n.start(t)
		postLogin(agent + 1)
		awaitShown(2001, agent, agent+1)
	}

	p.screenshot(t, "wallboard", 800, 400, "light")
	var rows int
	p.mustEval(t, `document.querySelectorAll("#agents li").length`, &rows)

	if rows != 5 {
		t.Errorf("the page shows %d agents, want 5", rows)
	}

	p.checkPage(t)
}
