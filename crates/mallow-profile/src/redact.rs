//! A profile to give away: what programs did, and nothing of who ran them, where, and with which arguments.

use crate::Profile;
use mallow_stacks::base_name;

impl Profile {
    /// Leaves out arguments of command lines, folders of all paths, and what is known of the machine.
    pub fn redact(&mut self) {
        self.stacks.redact();
        self.recording.environment.clear();
        self.recording.mapped.clear();
        self.recording.suppressions.clear();
        self.recording.command.truncate(1);
        self.recording.command.iter_mut().for_each(|program| *program = base_name(program));
        self.recording.nameless.iter_mut().for_each(|nameless| nameless.module = base_name(&nameless.module));
        self.recording.early_ends.iter_mut().for_each(|ends| ends.module = base_name(&ends.module));
        for process in &mut self.processes {
            // Where a path has blanks in it nobody knows where it ends.
            process.command = base_name(process.command.split(' ').next().unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Process, Profile};

    #[test]
    fn of_a_command_line_the_programs_name_is_left() {
        let mut profile = Profile::default();
        profile.recording.command = ["/srv/eve/app", "--password", "secret"].map(str::to_owned).to_vec();
        profile.recording.environment = vec![("kernel".to_owned(), "6.1-eves".to_owned())];
        let command = "/srv/eve/my app /etc/x".to_owned();
        profile.processes.push(Process { command, ..Process::default() });
        profile.redact();
        assert_eq!(
            (profile.recording.command, profile.recording.environment),
            (vec!["app".to_owned()], vec![])
        );
        assert_eq!(profile.processes[0].command, "my");
    }
}
