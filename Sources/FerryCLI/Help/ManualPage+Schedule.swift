extension ManualPage {
    /// What holds of windows, jobs that come after others, and programs that renew links.
    static let schedules = """
        .Sh SCHEDULES AND LINKS
        With
        .Fl -window
        a job runs only while a clock with the caller's local time, summer time included, shows one of those hours;
        an end before the beginning is that of the next day.
        A job that runs when its window closes stops and keeps what it has, which counts as no attempt.
        .Pp
        With
        .Fl -after
        a job waits until the others are completed.
        If one of them fails or is cancelled it fails, for the reason dependency, and so does what comes after it;
        .Cm retry
        of both lets it wait again.
        If one of them is paused it waits on, and says so.
        .Cm get ,
        .Cm put
        and
        .Cm wait
        carry out what their jobs come after as well.
        .Pp
        .Cm resume
        and
        .Cm retry
        of a waiting job do not wait for a time or a window, but for other jobs they do;
        .Cm set Ar JOB Fl -after No none
        ends that.
        .Pp
        A link has expired when the server answers 403 or 410 for a URL that had worked, that carries an expiry, or
        that has a program for new links.
        What was fetched is kept;
        .Cm set Ar JOB Fl -url Ar URL
        goes on with a new one if the file there proves to be the same.
        A host that has asked for a pause is not asked for that before the pause is over: one of up to five seconds is
        waited for, with a longer one the command says how long it is, and changes nothing.
        .Pp
        The program of
        .Fl -renew
        is a file without arguments, looked for in
        .Ev PATH
        and kept as an absolute path.
        It runs with the caller's rights, in
        .Pa / ,
        for a minute at most, and is killed with its process group after that, and when the job is paused or the
        service stops or dies.
        On standard input it gets the job as
        .Cm show Fl -json
        prints it, without the secrets of its URL, and in the environment
        .Ev FERRY_JOB_ID ,
        .Ev FERRY_JOB_KIND ,
        .Ev FERRY_JOB_STATE ,
        .Ev FERRY_JOB_REASON ,
        .Ev FERRY_JOB_MESSAGE ,
        .Ev FERRY_JOB_URL ,
        .Ev FERRY_JOB_PATH ,
        .Ev FERRY_JOB_GROUP ,
        .Ev FERRY_JOB_BYTES_DONE
        and
        .Ev FERRY_JOB_BYTES_TOTAL .
        It prints the new URL as its only line and ends with status 0.
        The job waits meanwhile, for the reason auth; if there is no new link, if it leads to another file, or if three
        links in a row bring nothing, it fails for the reason link-expired, with what the program said last on
        standard error.
        The machine's queue runs no programs.

        """
}
