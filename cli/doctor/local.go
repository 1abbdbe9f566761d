package doctor

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"
)

func checkDisk(f *Facts) []Finding {
	if f.Local.Size == 0 {
		return []Finding{{Level: Skipped, Message: "cannot read the free space of the disk"}}
	}
	part := 100 * f.Local.Free / f.Local.Size
	message := fmt.Sprintf("%s free for %s, %d %% of the file system", size(f.Local.Free), f.DataDir, part)
	remedy := "free some space, or put " + f.DataDir + " on a filesystem of its own; a server ends when it cannot write"
	switch {
	case f.Local.Free < 512<<20:
		return finding(Fail, message, remedy)
	case f.Local.Free < 4<<30 && part < 20 || part < 5:
		return finding(Warn, message, remedy)
	}
	return ok("%s", message)
}

func checkCertificates(f *Facts) []Finding {
	var found []Finding
	first := time.Time{}
	for _, c := range f.Local.Certificates {
		found = append(found, certificate(f.Now, c)...)
		if first.IsZero() || c.Ends.Before(first) {
			first = c.Ends
		}
	}
	for _, s := range f.Servers {
		if !s.End.IsZero() && f.Now.After(s.End) {
			found = append(found, finding(Fail, fmt.Sprintf("the certificate of server %s expired at %s", s.Name, s.End.UTC().Format(time.RFC3339)), "restart holdfast there")...)
		}
	}
	if first.IsZero() {
		return orOK(found, "there are no certificates on this machine")
	}
	return orOK(found, "%s %s", counted(len(f.Local.Certificates), "", "the certificate expires in", "the first of %d certificates expires in"), roughly(first.Sub(f.Now)))
}

// certificate judges one by the part of its life that is left. It should have been renewed with a third left, and a quarter at
// the latest.
func certificate(now time.Time, c Certificate) []Finding {
	left, life := c.Ends.Sub(now), c.Ends.Sub(c.Begins)
	message := fmt.Sprintf("%s expires in %s", c.Path, roughly(left))
	switch {
	case c.Authority && left < 365*24*time.Hour:
		return finding(Warn, "the authority "+message, "holdfast ca rotate")
	case c.Authority:
		return nil
	case left <= 0:
		return finding(Fail, fmt.Sprintf("%s expired at %s", c.Path, c.Ends.UTC().Format(time.RFC3339)), anew(c.Path))
	case left < life/5:
		return finding(Warn, message+", and should have been renewed", "check that holdfast runs here; its log has the error of the renewal")
	}
	return nil
}

func anew(path string) string {
	switch filepath.Base(path) {
	case "host.crt":
		return "create a token on a server with 'holdfast token create', then start the agent with 'holdfast agent --join TOKEN'; " +
			"a server with 'holdfast server --join TOKEN' and a token of 'holdfast token create --role server'"
	case "kubeconfig":
		return "copy admin.kubeconfig from a server again"
	}
	return "restart holdfast on this server, which renews it"
}

// checkKeys reports private keys that other users may read: whoever has the authority's key can make
// an administrator's certificate.
func checkKeys(f *Facts) []Finding {
	if len(f.Local.Exposed) == 0 {
		return ok("only the owner can read private keys")
	}
	message := "other users may read or change " + f.Local.Exposed[0]
	if more := len(f.Local.Exposed) - 1; more > 0 {
		message += fmt.Sprintf(", and %d more", more)
	}
	return finding(Fail, message, "restart holdfast on this machine, which restricts the modes; "+
		"if other users had access to the machine or to a copy of the directory, run 'holdfast ca rotate' on a server")
}

// checkStrays looks for what runs, or is kept, of daemons that are not wanted any more.
func checkStrays(f *Facts) []Finding {
	switch {
	case f.Host == "":
		return ok("this machine runs no agent")
	case twins(f)[f.Host] != "":
		return []Finding{{Level: Skipped, Message: "daemons and data here may be needed on this machine or the other: first leave only one machine that runs as host " + f.Host}}
	}
	wanted := map[string]bool{}
	for i := range f.Daemons {
		if d := &f.Daemons[i]; d.Spec.Host == f.Host {
			wanted[d.Namespace+"."+d.Name] = true
		}
	}
	var found []Finding
	for _, name := range slices.Sorted(maps.Keys(f.Local.Processes)) {
		if !wanted[name] {
			found = append(found, finding(Fail, fmt.Sprintf("process %d is the daemon %s, which does not belong to this host", f.Local.Processes[name], name),
				"if holdfast runs here, it stops the process soon. Otherwise, and if no other data directory is in use on this machine, check it with 'ps', and stop it")...)
		}
	}
	for _, name := range f.Local.Records {
		if !wanted[name] && f.Local.Processes[name] == 0 {
			found = append(found, finding(Warn, fmt.Sprintf("data of daemon %s, which does not belong to this host", name),
				fmt.Sprintf("if holdfast runs here, it removes the data soon. Otherwise check %s", filepath.Join(f.DataDir, "agent", "daemons", name)))...)
		}
	}
	return orOK(found, "no stray daemon runs here")
}

func checkSnapshots(f *Facts) []Finding {
	if f.Role != "server" {
		return ok("only servers keep backups of the control plane")
	}
	age := f.Now.Sub(f.Local.Snapshot)
	switch {
	case f.Local.Snapshot.IsZero():
		return finding(Warn, "no backup of the control plane on this server", "take one with 'holdfast backup FILE', and keep it on another machine")
	case age > 24*time.Hour:
		return finding(Warn, fmt.Sprintf("the last backup of the control plane on this server is %s old", roughly(age)), "the server's log has the cause; take one with 'holdfast backup FILE'")
	}
	return ok("the last backup of the control plane is %s old", roughly(age))
}

func checkProblems(f *Facts) []Finding {
	var found []Finding
	for _, p := range f.Local.Problems {
		found = append(found, finding(Warn, p, "run 'holdfast doctor' as root")...)
	}
	return orOK(found, "everything on this machine could be read")
}
