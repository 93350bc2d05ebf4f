package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// refusedMessage matches what a golden conversation says of a message that is none of the vendor's.
var refusedMessage = regexp.MustCompile(`^= \w+: `)

// goldenConversation returns the first lines of a protocol's golden conversation, and its messages as JavaScript:
// those that Trunkline sends, and those of the vendor.
func goldenConversation(t *testing.T, protocol string) (head []string, sent, received string) {
	t.Helper()
	all := lines(readFile(t, "../internal/aiprotocol/dialect/testdata/"+protocol+".golden"))
	for i, line := range all[2:] {
		next := min(i+3, len(all)-1)
		switch {
		case strings.HasPrefix(line, "> {"):
			sent += line[2:] + ",\n"
		case strings.HasPrefix(line, "< {") && !refusedMessage.MatchString(all[next]):
			received += line[2:] + ",\n"
		}
	}

	return all[:2], sent, received
}

// TestGoldenConversationsHaveTheVendorsTypes compiles the messages of the golden conversations against the types of the
// vendors' own packages of npm, and has Twilio's check the signature.
func TestGoldenConversationsHaveTheVendorsTypes(t *testing.T) {
	t.Parallel()
	node := tool(t, "node")
	tool(t, "npm")
	packages, dir := installed(t, vendorPackages), t.TempDir()
	if err := os.Symlink(filepath.Join(packages, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}

	_, sent, received := goldenConversation(t, "openai_realtime")
	program := `import type { RealtimeClientEvent, RealtimeServerEvent } from "openai/resources/realtime/realtime";
import type { Deepgram } from "@deepgram/sdk";
import twilio from "twilio";
export const sentToOpenAI: RealtimeClientEvent[] = [` + sent + `];
const received = [` + received + `] as const;
export const typesOfOpenAI: RealtimeServerEvent["type"][] = received.map(({ type }) => type);
`
	_, sent, received = goldenConversation(t, "deepgram_agent")
	program += `type Settings = Omit<Deepgram.agent.AgentV1Settings, "agent"> & { agent: unknown }; // agent is the operator's
export const sentToDeepgram: (Settings | Deepgram.agent.AgentV1SendFunctionCallResponse)[] = [` + sent + `];
export const fromDeepgram: (Deepgram.agent.AgentV1Welcome | Deepgram.agent.AgentV1SettingsApplied |
  Deepgram.agent.AgentV1UserStartedSpeaking | Deepgram.agent.AgentV1ConversationText |
  Deepgram.agent.AgentV1FunctionCallRequest | Deepgram.agent.AgentV1Error)[] = [` + received + `];
`
	head, _, _ := goldenConversation(t, "twilio")
	signature, _ := json.Marshal(strings.TrimPrefix(head[1], "X-Twilio-Signature: "))
	program += `if (!twilio.validateRequest("12345", ` + string(signature) + `, ` + jsString(head[0]) +
		`, {})) throw new Error("signature");
`
	if err := os.WriteFile(filepath.Join(dir, "golden.mts"), []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}

	for _, args := range [][]string{
		{filepath.Join("node_modules", "typescript", "bin", "tsc"), "--strict", "--skipLibCheck", "--esModuleInterop",
			"--target", "es2022", "--lib", "es2022,dom", "--module", "nodenext", "golden.mts"},
		{"golden.mjs"},
	} {
		cmd := exec.CommandContext(t.Context(), node, args...)
		cmd.Dir = dir
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, output)
		}
	}
}
