/**
 * The event types. The board lists all of them at login, because Trunkline's own events are sent
 * only to subscribers whose filter contains AGENT_CUSTOM_EVENT.
 */
export const eventTypes = [
  "svc_cc_queue_on_call_event",
  "svc_cc_queue_on_agent_state_event",
  "AGENT_LOGIN",
  "AGENT_LOGOUT",
  "AGENT_STATUS_CHANGE",
  "AGENT_QUEUE_JOIN",
  "AGENT_QUEUE_LEAVE",
  "AGENT_CALL_START",
  "AGENT_CALL_END",
  "AGENT_BREAK_START",
  "AGENT_BREAK_END",
  "AGENT_TRANSFER",
  "AGENT_CONFERENCE",
  "AGENT_DEVICE_REGISTER",
  "AGENT_DEVICE_UNREGISTER",
  "AGENT_PERFORMANCE",
  "AGENT_CUSTOM_EVENT",
];
