package freeswitch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/telephony/esl"
)

// agentStatuses are mod_callcenter's words for an agent's presence.
var agentStatuses = map[feed.Action]string{
	feed.ActionLogin: "Available", feed.ActionReady: "Available", feed.ActionLogout: "Logged Out",
	feed.ActionBreak: "On Break",
}

// spyKeys are the keys of eavesdrop that let the agent, or both, hear the listener: the caller's leg is
// listened to, and 1 mixes into what is read from it, which its other leg hears, the agent (2: what is written to it).
var spyKeys = map[feed.Action]string{feed.ActionListen: "", feed.ActionWhisper: "queue_dtmf:w1@500,",
	feed.ActionBarge: "queue_dtmf:w3@500,"}

// Command implements feed.Commander.
func (s *session) Command(ctx context.Context, c feed.Command) error {
	if err := feed.CheckCommand(c); err != nil {
		return err
	}

	switch c.Action {
	case feed.ActionLogin, feed.ActionLogout, feed.ActionBreak, feed.ActionReady:
		if c.Reason != "" {
			return feed.CannotDo("FreeSWITCH", c, "mod_callcenter has no reasons of breaks")
		}
		return s.runCommand(ctx,
			fmt.Sprintf("callcenter_config agent set status %s '%s'", c.AgentID, agentStatuses[c.Action]))
	case feed.ActionJoin:
		return s.runCommand(ctx, fmt.Sprintf("callcenter_config tier add %s %s 1 1", c.QueueID, c.AgentID))
	case feed.ActionLeave:
		return s.runCommand(ctx, fmt.Sprintf("callcenter_config tier del %s %s", c.QueueID, c.AgentID))
	}

	leg, err := s.callerLeg(ctx, c)
	if err != nil {
		return err
	}

	switch c.Action {
	case feed.ActionHangup:
		return s.runCommand(ctx, "uuid_kill "+leg)
	case feed.ActionTransfer:
		return s.runCommand(ctx, fmt.Sprintf("uuid_transfer %s %s", leg, c.Destination))
	case feed.ActionHold:
		return s.runCommand(ctx, "uuid_hold "+leg)
	case feed.ActionResume:
		return s.runCommand(ctx, "uuid_hold off "+leg)
	case feed.ActionListen, feed.ActionWhisper, feed.ActionBarge:
		return s.spy(ctx, c, leg)
	case feed.ActionAddListener:
		return s.addListener(ctx, c, leg)
	}

	return feed.CannotDo("FreeSWITCH", c, "unknown action")
}

// callerLeg returns the channel of a call. The call of a member of a queue has an id of its
// own, so the queue tells its channel.
func (s *session) callerLeg(ctx context.Context, c feed.Command) (string, error) {
	answer, err := s.conn.API(ctx, "uuid_exists "+c.CallID)
	if err != nil {
		return "", commandError(err)
	}

	if strings.TrimSpace(answer) == "true" {
		// An agent's own leg names the caller's.
		caller, err := s.conn.API(ctx, "uuid_getvar "+c.CallID+" cc_member_session_uuid")
		caller = strings.TrimSpace(caller)
		switch {
		case err != nil && !isRefusal(err):
			return "", commandError(err)
		case err == nil && caller != "" && caller != "_undef_":
			return caller, nil
		}

		return c.CallID, nil
	}

	gone := fault.Conflict("The switch does not have the call %.80q any more", c.CallID)
	if c.QueueID == "" {
		return "", gone
	}

	members, err := s.queryTable(ctx, "callcenter_config queue list members "+c.QueueID, "cid_name")
	if err != nil {
		return "", commandError(err)
	}

	for _, row := range members.rows {
		session := members.get(row, "session_uuid")
		if members.get(row, "uuid") == c.CallID && session != "" {
			return session, nil
		}
	}

	return "", gone
}

// beep is what both parties hear with the setting listen_beep: 0.3 s of 1400 Hz.
const beep = "tone_stream://%(300,0,1400)"

// listenerTag and an action's id are the presence_data of the legs that listen: the list of channels has no
// interaction_id.
const listenerTag = "trunkline-listener:"

// spy rings the phone of the command's extension and connects it to the call when it
// answers.
func (s *session) spy(ctx context.Context, c feed.Command, leg string) error {
	phone, err := s.phoneOf(ctx, c)
	if err != nil {
		return err
	}

	if s.listenBeep {
		if err := s.runCommand(ctx, fmt.Sprintf("uuid_broadcast %s %s both", leg, beep)); err != nil {
			return err // the parties have heard nothing
		}
	}

	// origination_uuid is not set: the second phone of the extension would fail as a duplicate.
	return commandError(s.conn.Background(ctx, fmt.Sprintf(
		"originate {interaction_id=%[1]s,presence_data=%[2]s%[1]s,originate_timeout=30,ignore_early_media=true,origination_caller_id_name=Trunkline,origination_caller_id_number=%[3]s}%[4]s '%[5]seavesdrop:%[6]s' inline",
		c.ID, listenerTag, c.Extension, phone, spyKeys[c.Action], leg), c.ID))
}

// addListener has the switch send both voices of the caller's leg to Trunkline, as an AI provider's session.
func (s *session) addListener(ctx context.Context, c feed.Command, leg string) error {
	if s.listenBy == "" {
		return feed.CannotDo("FreeSWITCH", c, "its feed has no listen_by")
	}

	if s.listenBeep {
		if err := s.runCommand(ctx, fmt.Sprintf("uuid_broadcast %s %s both", leg, beep)); err != nil {
			return err // the parties have heard nothing
		}
	}

	rate, _ := feed.ListenRate(s.listenBy)
	metadata, err := json.Marshal(map[string]any{"callId": leg, "otherLegCallId": c.CallID, "sampleRate": rate,
		"channels": 2, "callerIdNumber": c.Caller, "sessionId": c.SessionID})
	if err != nil {
		return fault.Internal(err, "The command could not be written")
	}

	return s.runCommand(ctx, strings.NewReplacer(feed.ListenCall, leg, feed.ListenProvider, c.ProviderID,
		feed.ListenMetadata, string(metadata)).Replace(s.listenBy))
}

// phoneOf returns the dial string of the command's extension: of the first domain in which the switch has
// it, of the account's, the agent's, the queue's and the switch's own.
func (s *session) phoneOf(ctx context.Context, c feed.Command) (string, error) {
	domains := []string{c.Domain, domainOf(c.AgentID), domainOf(c.QueueID)}
	own, err := s.conn.API(ctx, "global_getvar domain")
	switch {
	case err == nil:
		domains = append(domains, strings.TrimSpace(own))
	case !isRefusal(err):
		return "", commandError(err)
	}

	for _, domain := range domains {
		if domain == "" || strings.ContainsFunc(domain, unicode.IsSpace) {
			continue
		}

		answer, err := s.conn.API(ctx, fmt.Sprintf("user_exists id %s %s", c.Extension, domain))
		if err != nil && !isRefusal(err) {
			return "", commandError(err)
		}
		if err != nil || strings.TrimSpace(answer) == "true" { // a switch that does not say is asked to ring
			return "user/" + c.Extension + "@" + domain, nil
		}
	}

	return "", fault.New(fault.KindRefused, "The switch has no user %s in the domains %q", c.Extension, domains)
}

// runCommand runs a command on the switch.
func (s *session) runCommand(ctx context.Context, command string) error {
	_, err := s.conn.API(ctx, command)
	return commandError(err)
}

// retryAfterSilence is the time after which a command whose answer is missing may be asked again.
const retryAfterSilence = 5 * time.Second

// commandError returns the error of a command with its kind.
func commandError(err error) error {
	var refusal *esl.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal):
		return fault.New(fault.KindRefused, "The switch refused: %s", refusal.Error())
	}
	return fault.Unavailable(err, retryAfterSilence, "The switch did not answer")
}
