package situations

import api "github.com/holdfast-storage/holdfast/api/v1alpha1"

// hosts are the situations of hosts, agents and servers.
var hosts = []Situation{
	{
		Name: "agent-killed", About: "host", Cause: "The agent's process was killed; the machine and its daemons run.",
		Ask: "holdfast why host/h2", Reason: api.ReasonAgentNotRunning, Next: "'systemctl start holdfast'",
		Staged: "e2e TestSilentAgents", Scenario: "internal/absence TestJudge",
	},
	{
		Name: "agent-stopped", About: "host", Cause: "A user stopped the agent.",
		Ask: "holdfast why host/h2", Reason: api.ReasonAgentStopped, Next: "run 'systemctl start holdfast' on host h2",
		Staged: "e2e TestSilentAgents", Scenario: "internal/absence TestJudge",
	},
	{
		Name: "agent-hangs", About: "host", Cause: "The agent's process hangs (SIGSTOP).",
		Ask: "holdfast why host/h2", Reason: api.ReasonAgentHangs, Next: "run 'systemctl restart holdfast' on host h2",
		Staged: "e2e TestSilentAgents", Scenario: "internal/absence TestJudge",
	},
	{
		Name: "agent-hangs-osd", About: "daemon", Cause: "The agent of an OSD's host hangs (SIGSTOP).",
		Ask: "holdfast why osd.2", Reason: api.ReasonAgentHangs, Next: "run 'systemctl restart holdfast' on host h2",
		Staged: "e2e TestSilentAgents",
	},
	{
		Name: "host-certificate-ended", About: "host", Cause: "The certificate of a host ended, such as after months " +
			"without power.",
		Ask: "holdfast why host/h2", Reason: api.ReasonCertificateEnded, Next: "'holdfast agent --join TOKEN'",
		Staged: "e2e TestSilentAgents", Scenario: "internal/absence TestJudge",
	},
	{
		Name: "network-cut", About: "host", Cause: "The network between the server and a host is cut; the mons reach its " +
			"OSD.",
		Ask: "holdfast why host/h2", Reason: api.ReasonNetworkCut, Next: "do not remove the host",
		Staged: "e2e TestSilentAgents", Scenario: "internal/absence TestJudge",
	},
	{
		Name: "host-off", About: "host", Cause: "A machine is switched off.",
		Ask: "holdfast why host/h2", Reason: api.ReasonMachineUnreachable, Next: "switch the machine of host h2 on",
		Staged: "e2e TestSilentAgents", Scenario: "internal/absence TestJudge",
	},
	{
		Name: "host-off-osd", About: "daemon", Cause: "The machine of an OSD is switched off.",
		Ask: "holdfast why osd.2", Reason: api.ReasonMachineUnreachable, Next: "switch the machine of host h2 on",
		Staged: "e2e TestSilentAgents",
	},
	{
		Name: "server-killed", About: "server", Cause: "The process of a server was killed.",
		Ask: "holdfast why host/h2", Reason: api.ReasonAgentNotRunning, Next: "run 'systemctl start holdfast' on host h2",
		Staged: "e2e TestSilentServers", Scenario: "internal/absence TestJudge",
	},
	{
		Name: "server-hangs", About: "server", Cause: "The process of a server hangs (SIGSTOP).",
		Ask: "holdfast why host/h2", Reason: api.ReasonAgentHangs, Next: "run 'systemctl restart holdfast' on host h2",
		Staged: "e2e TestSilentServers", Scenario: "internal/absence TestJudge",
	},
	{
		Name: "server-off", About: "server", Cause: "The machine of a server is switched off.",
		Ask: "holdfast why host/h2", Reason: api.ReasonMachineUnreachable, Next: "switch the machine of host h2 on",
		Staged: "e2e TestSilentServers", Scenario: "internal/absence TestJudge",
	},
	{
		Name: "servers-lost", About: "server", Cause: "Two of three servers are down.",
		Ask: "holdfast status", Reason: api.ReasonQuorumLost, Next: "start the servers that do not answer",
		Staged: "e2e TestSilentServers", Scenario: "cli/noquorum TestRoundTripper",
	},
	{
		Name: "servers-lost-kubectl", About: "server", Cause: "Two of three servers are down.",
		Ask: "kubectl get hosts", Reason: api.ReasonQuorumLost, Next: "start them ('systemctl start holdfast' there)",
		Staged: "e2e TestSilentServers", Scenario: "control/quorumlost TestWatcher",
	},
	{
		Name: "servers-hang", About: "server", Cause: "Two of three servers hang (SIGSTOP).",
		Ask: "kubectl get hosts", Reason: api.ReasonQuorumLost, Next: "start them ('systemctl start holdfast' there)",
		Staged: "e2e TestSilentServers",
	},
	{
		Name: "host-certificate-refused", About: "host", Cause: "The authority was replaced while a host was off.",
		Ask: "holdfast why host/h2", Reason: api.ReasonCertificateRefused, Next: "'holdfast agent --join TOKEN'",
		Scenario: "cli/why TestExplain_hosts",
	},
	{
		Name: "servers-not-trusted", About: "host", Cause: "The clock of a host is years wrong, or it trusts another " +
			"authority: the agent ends each connection.",
		Ask: "holdfast why host/h2", Reason: api.ReasonServersNotTrusted, Next: "check the clock of host h2",
		Scenario: "cli/why TestExplain_hosts",
	},
	{
		Name: "host-disk-full", About: "host", Cause: "The file system of /var/lib/holdfast is full.",
		Ask: "holdfast why host/h2", Reason: api.ReasonDiskFull, Next: "free space on host h2",
		Scenario: "cli/why TestExplain_hosts",
	},
	{
		Name: "host-read-only", About: "host", Cause: "The file system of /var/lib/holdfast is read-only.",
		Ask: "holdfast why host/h2", Reason: api.ReasonReadOnly, Next: "'dmesg' on host h2",
		Scenario: "cli/why TestExplain_hosts",
	},
	{
		Name: "host-clock", About: "host", Cause: "The clock of a host is minutes wrong.",
		Ask: "holdfast why host/h2", Reason: api.ReasonClockSkewed, Next: "set up time synchronization on host h2",
		Scenario: "cli/why TestExplain_hosts",
	},
	{
		Name: "host-not-selected", About: "host", Cause: "A host has joined, and no StorageNode selects it.",
		Ask: "holdfast why host/h2", Reason: api.ReasonNotSelected, Next: "nodeSelector {kubernetes.io/hostname: h2}",
		Scenario: "cli/why TestExplain_hosts",
	},
	{
		Name: "host-in-maintenance", About: "host", Cause: "A host is in maintenance, and everybody forgot it.",
		Ask: "holdfast why host/h2", Reason: api.ReasonHostNotActive, Next: "holdfast host maintenance exit h2",
		Scenario: "cli/why TestExplain_hosts",
	},
	{
		Name: "host-drained", About: "host", Cause: "A host is drained, and was not removed.",
		Ask: "holdfast why host/h2", Reason: api.ReasonHostNotActive, Next: "holdfast host remove h2",
		Scenario: "cli/why TestExplain_hosts",
	},
	{
		Name: "two-machines", About: "host", Cause: "A machine was cloned, and both run as one host.",
		Ask: "holdfast why host/h2", Reason: api.ReasonTwoMachines, Next: "'systemctl disable --now holdfast' on the other",
		Scenario: "cli/why TestExplain_hosts",
	},
	{
		Name: "agent-unknown", About: "host", Cause: "An agent was disconnected a moment ago, and the leader has not " +
			"found out why.",
		Ask: "holdfast why host/h2", Reason: api.ReasonAgentDisconnected, Next: "systemctl status holdfast",
		Scenario: "cli/why TestExplain_hosts",
	},
}
