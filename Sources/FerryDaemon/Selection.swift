import FerryCore
import FerryEngine

/// The jobs that a steering command means.
struct Selection {
    /// All of them: those named first.
    let jobs: [JobID]
    /// Those that were named one by one.
    let named: Set<JobID>
    /// The states by which the others were chosen.
    let states: Set<JobState>

    /// The answers that are told.
    ///
    /// Between choosing a job and steering it the job may have ended or gone: nobody asked for that one, so that it
    /// could not be steered is no failure. Of a job that was named it is.
    func answers(to steered: [Engine.Steered]) -> [Engine.Steered] {
        steered.filter { answer in
            guard answer.error != nil, !self.named.contains(answer.id) else { return true }
            guard let state = answer.state else { return false }
            return self.states.contains(state)
        }
    }
}
