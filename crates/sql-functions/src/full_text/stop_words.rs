//! Words too common to search for, per language; sorted, so that they can be looked up.
//!
//! The English list is C. Fox's published one ("A stop list for general text", 1989), written down from memory, without
//! `state` and `states`: the newest SDK suites find "United States" as a phrase, and not "United Kingdom" with it. Which
//! list the service has is not documented (unsure). The other languages have no record at all: their lists hold words
//! of grammar (unsure).

/// English, single letters included.
#[rustfmt::skip]
pub(super) static ENGLISH: &[&str] = &[
    "a", "about", "above", "across", "after", "again", "against", "all", "almost", "alone", "along",
    "already", "also", "although", "always", "among", "an", "and", "another", "any", "anybody", "anyone",
    "anything", "anywhere", "are", "area", "areas", "around", "as", "ask", "asked", "asking", "asks", "at",
    "away", "b", "back", "backed", "backing", "backs", "be", "became", "because", "become", "becomes",
    "been", "before", "began", "behind", "being", "beings", "best", "better", "between", "big", "both",
    "but", "by", "c", "came", "can", "cannot", "case", "cases", "certain", "certainly", "clear", "clearly",
    "come", "could", "d", "did", "differ", "different", "differently", "do", "does", "done", "down",
    "downed", "downing", "downs", "during", "e", "each", "early", "either", "end", "ended", "ending",
    "ends", "enough", "even", "evenly", "ever", "every", "everybody", "everyone", "everything",
    "everywhere", "f", "face", "faces", "fact", "facts", "far", "felt", "few", "find", "finds", "first",
    "for", "four", "from", "full", "fully", "further", "furthered", "furthering", "furthers", "g", "gave",
    "general", "generally", "get", "gets", "give", "given", "gives", "go", "going", "good", "goods", "got",
    "great", "greater", "greatest", "group", "grouped", "grouping", "groups", "h", "had", "has", "have",
    "having", "he", "her", "here", "herself", "high", "higher", "highest", "him", "himself", "his", "how",
    "however", "i", "if", "important", "in", "interest", "interested", "interesting", "interests", "into",
    "is", "it", "its", "itself", "j", "just", "k", "keep", "keeps", "kind", "knew", "know", "known",
    "knows", "l", "large", "largely", "last", "later", "latest", "least", "less", "let", "lets", "like",
    "likely", "long", "longer", "longest", "m", "made", "make", "making", "man", "many", "may", "me",
    "member", "members", "men", "might", "more", "most", "mostly", "mr", "mrs", "much", "must", "my",
    "myself", "n", "necessary", "need", "needed", "needing", "needs", "never", "new", "newer", "newest",
    "next", "no", "nobody", "non", "noone", "not", "nothing", "now", "nowhere", "number", "numbers", "o",
    "of", "off", "often", "old", "older", "oldest", "on", "once", "one", "only", "open", "opened",
    "opening", "opens", "or", "order", "ordered", "ordering", "orders", "other", "others", "our", "out",
    "over", "p", "part", "parted", "parting", "parts", "per", "perhaps", "place", "places", "point",
    "pointed", "pointing", "points", "possible", "present", "presented", "presenting", "presents",
    "problem", "problems", "put", "puts", "q", "quite", "r", "rather", "really", "right", "room", "rooms",
    "s", "said", "same", "saw", "say", "says", "second", "seconds", "see", "seem", "seemed", "seeming",
    "seems", "sees", "several", "shall", "she", "should", "show", "showed", "showing", "shows", "side",
    "sides", "since", "small", "smaller", "smallest", "so", "some", "somebody", "someone", "something",
    "somewhere", "still", "such", "sure", "t", "take", "taken", "than", "that", "the",
    "their", "them", "then", "there", "therefore", "these", "they", "thing", "things", "think", "thinks",
    "this", "those", "though", "thought", "thoughts", "three", "through", "thus", "to", "today", "together",
    "too", "took", "toward", "turn", "turned", "turning", "turns", "two", "u", "under", "until", "up",
    "upon", "us", "use", "used", "uses", "v", "very", "w", "want", "wanted", "wanting", "wants", "was",
    "way", "ways", "we", "well", "wells", "went", "were", "what", "when", "where", "whether", "which",
    "while", "who", "whole", "whose", "why", "will", "with", "within", "without", "work", "worked",
    "working", "works", "would", "x", "y", "year", "years", "yet", "you", "young", "younger", "youngest",
    "your", "yours", "z",
];

/// French.
#[rustfmt::skip]
pub(super) static FRENCH: &[&str] = &[
    "a", "afin", "ai", "aie", "aient", "ainsi", "ais", "ait", "aller", "alors", "as", "au", "aucun",
    "aucune", "aura", "aurait", "auront", "aussi", "autre", "autres", "aux", "avaient", "avait", "avant",
    "avec", "avez", "avoir", "avons", "ayant", "beaucoup", "bien", "c", "car", "ce", "ceci", "cela",
    "celle", "celles", "celui", "cependant", "certain", "certaine", "certaines", "certains", "ces", "cet",
    "cette", "ceux", "chacun", "chaque", "chez", "ci", "comme", "comment", "contre", "d", "dans", "de",
    "debout", "dedans", "dehors", "depuis", "des", "deux", "devait", "devant", "devrait", "doit", "donc",
    "dont", "du", "durant", "elle", "elles", "en", "encore", "entre", "est", "et", "eu", "eux", "fait",
    "fois", "font", "furent", "fut", "hors", "ici", "il", "ils", "je", "jusque", "l", "la", "laquelle",
    "le", "lequel", "les", "lesquels", "leur", "leurs", "lors", "lorsque", "lui", "là", "m", "ma",
    "maintenant", "mais", "me", "mes", "mien", "moi", "moins", "mon", "même", "mêmes", "n", "ne", "ni",
    "nommés", "non", "nos", "notre", "nous", "ont", "ou", "où", "par", "parce", "pareil", "parmi", "pas",
    "pendant", "personne", "peu", "peut", "peuvent", "plupart", "plus", "plusieurs", "plutôt", "pour",
    "pourquoi", "pouvait", "pu", "puis", "puisque", "qu", "quand", "que", "quel", "quelle", "quelles",
    "quelque", "quelques", "quels", "qui", "quoi", "rien", "s", "sa", "sans", "se", "selon", "sera",
    "serait", "seront", "ses", "seulement", "si", "sien", "soit", "sommes", "son", "sont", "sous", "soyez",
    "suis", "sur", "t", "ta", "tandis", "tant", "te", "tel", "telle", "telles", "tels", "tes", "toi", "ton",
    "tous", "tout", "toute", "toutes", "trop", "très", "tu", "un", "une", "va", "vers", "voici", "voilà",
    "vont", "vos", "votre", "vous", "vu", "y", "ça", "étaient", "était", "étant", "été", "être",
];

/// German.
#[rustfmt::skip]
pub(super) static GERMAN: &[&str] = &[
    "aber", "alle", "allem", "allen", "aller", "alles", "als", "also", "am", "an", "ander", "andere",
    "anderem", "anderen", "anderer", "anderes", "andern", "anders", "auch", "auf", "aus", "bei", "beim",
    "bereits", "bevor", "bin", "bis", "bist", "da", "dabei", "dadurch", "dafür", "dagegen", "daher",
    "damit", "danach", "daneben", "dann", "daran", "darauf", "daraus", "darf", "darin", "darum", "darunter",
    "das", "dass", "davon", "davor", "dazu", "dein", "deine", "deinem", "deinen", "deiner", "deines", "dem",
    "demnach", "den", "denen", "denn", "der", "deren", "derer", "des", "deshalb", "dessen", "dich", "die",
    "dies", "diese", "diesem", "diesen", "dieser", "dieses", "dir", "doch", "dort", "du", "durch", "dürfen",
    "eben", "ein", "eine", "einem", "einen", "einer", "eines", "einig", "einige", "einigem", "einigen",
    "einiger", "einiges", "einmal", "er", "erst", "es", "etwa", "etwas", "euch", "euer", "eure", "eurem",
    "euren", "eurer", "für", "gegen", "gehabt", "gewesen", "habe", "haben", "hat", "hatte", "hatten",
    "hier", "hin", "hinter", "ich", "ihm", "ihn", "ihnen", "ihr", "ihre", "ihrem", "ihren", "ihrer",
    "ihres", "im", "in", "indem", "ins", "ist", "jede", "jedem", "jeden", "jeder", "jedes", "jedoch",
    "jene", "jenem", "jenen", "jener", "jenes", "jetzt", "kann", "kannst", "kein", "keine", "keinem",
    "keinen", "keiner", "keines", "können", "könnte", "man", "manche", "manchem", "manchen", "mancher",
    "manches", "mehr", "mein", "meine", "meinem", "meinen", "meiner", "meines", "mich", "mir", "mit",
    "muss", "musste", "müssen", "nach", "nachdem", "nein", "nicht", "nichts", "noch", "nun", "nur", "ob",
    "oder", "ohne", "schon", "sehr", "sein", "seine", "seinem", "seinen", "seiner", "seines", "seit",
    "selbst", "sich", "sie", "sind", "so", "solche", "solchem", "solchen", "solcher", "solches", "soll",
    "sollen", "sollte", "sondern", "sonst", "sowie", "um", "und", "uns", "unser", "unsere", "unserem",
    "unseren", "unserer", "unter", "viel", "viele", "vom", "von", "vor", "war", "waren", "warum", "was",
    "weg", "weil", "weiter", "welche", "welchem", "welchen", "welcher", "welches", "wenn", "wer", "werde",
    "werden", "wie", "wieder", "will", "wir", "wird", "wirst", "wo", "wohl", "wollen", "wollte", "wurde",
    "wurden", "während", "würde", "würden", "zu", "zum", "zur", "zwar", "zwischen", "über",
];

/// Italian.
#[rustfmt::skip]
pub(super) static ITALIAN: &[&str] = &[
    "a", "abbia", "abbiamo", "abbiano", "ad", "agli", "ai", "al", "alcuna", "alcune", "alcuni", "alcuno",
    "alla", "alle", "allo", "allora", "altra", "altre", "altri", "altro", "anche", "ancora", "avere",
    "avesse", "aveva", "avevano", "avuto", "c", "che", "chi", "ci", "cioè", "ciò", "coi", "col", "come",
    "con", "contro", "cosa", "così", "cui", "da", "dagli", "dai", "dal", "dalla", "dalle", "dallo", "degli",
    "dei", "del", "dell", "della", "delle", "dello", "dentro", "di", "dopo", "dove", "due", "e", "ed",
    "era", "erano", "essa", "esse", "essere", "essi", "esso", "fa", "fanno", "fare", "fatto", "fino", "fra",
    "fu", "furono", "già", "gli", "ha", "hai", "hanno", "ho", "i", "il", "in", "infatti", "io", "l", "la",
    "le", "lei", "li", "lo", "loro", "lui", "ma", "me", "meno", "mentre", "mi", "mia", "mie", "miei", "mio",
    "molta", "molte", "molti", "molto", "ne", "negli", "nei", "nel", "nella", "nelle", "nello", "nessun",
    "nessuna", "nessuno", "niente", "noi", "non", "nostra", "nostre", "nostri", "nostro", "nulla", "o",
    "ogni", "oltre", "oppure", "per", "perché", "perciò", "però", "più", "poco", "poi", "possono", "prima",
    "proprio", "può", "qua", "qualche", "quale", "quali", "quando", "quanta", "quante", "quanti", "quanto",
    "quasi", "quella", "quelle", "quelli", "quello", "questa", "queste", "questi", "questo", "qui",
    "quindi", "sarebbe", "sarà", "se", "sei", "sembra", "senza", "si", "sia", "siamo", "siano", "siete",
    "sono", "sopra", "sotto", "sta", "stata", "state", "stati", "stato", "stessa", "stesse", "stessi",
    "stesso", "su", "sua", "sue", "sugli", "sui", "sul", "sulla", "sulle", "sullo", "suo", "suoi", "tale",
    "tali", "tanta", "tante", "tanti", "tanto", "te", "ti", "tra", "troppo", "tu", "tua", "tue", "tuo",
    "tuoi", "tutta", "tutte", "tutti", "tutto", "un", "una", "uno", "va", "verso", "vi", "voi", "vostra",
    "vostre", "vostri", "vostro", "è",
];

/// Portuguese.
#[rustfmt::skip]
pub(super) static PORTUGUESE: &[&str] = &[
    "a", "acerca", "agora", "ainda", "algo", "algum", "alguma", "algumas", "alguns", "ali", "ambos",
    "antes", "ao", "aos", "apenas", "após", "aquela", "aquelas", "aquele", "aqueles", "aqui", "aquilo",
    "as", "assim", "através", "até", "bem", "cada", "coisa", "com", "como", "contra", "contudo", "cuja",
    "cujas", "cujo", "cujos", "da", "daquela", "daquele", "das", "de", "dela", "delas", "dele", "deles",
    "depois", "desde", "dessa", "desse", "desta", "deste", "deve", "devem", "disso", "disto", "do", "dos",
    "durante", "e", "ela", "elas", "ele", "eles", "em", "embora", "enquanto", "entre", "era", "eram",
    "essa", "essas", "esse", "esses", "esta", "estas", "estava", "estavam", "este", "estes", "está",
    "estão", "eu", "faz", "fazer", "feito", "foi", "for", "foram", "fosse", "há", "isso", "isto", "já",
    "lhe", "lhes", "lá", "mais", "mas", "me", "mesma", "mesmas", "mesmo", "mesmos", "meu", "meus", "minha",
    "minhas", "muita", "muitas", "muito", "muitos", "na", "nada", "nas", "nem", "nenhum", "nenhuma",
    "nessa", "nesse", "nesta", "neste", "no", "nos", "nossa", "nossas", "nosso", "nossos", "num", "numa",
    "não", "nós", "o", "onde", "os", "ou", "outra", "outras", "outro", "outros", "para", "pela", "pelas",
    "pelo", "pelos", "per", "pode", "podem", "podia", "pois", "por", "porque", "portanto", "porém", "pouca",
    "pouco", "poucos", "própria", "próprio", "quais", "qual", "qualquer", "quando", "quanto", "quase",
    "que", "quem", "se", "seja", "sejam", "sem", "sempre", "sendo", "ser", "será", "seu", "seus", "si",
    "sido", "sob", "sobre", "sua", "suas", "são", "só", "tal", "talvez", "também", "tanta", "tanto", "te",
    "tem", "tendo", "tenha", "ter", "teu", "teus", "teve", "tinha", "tinham", "toda", "todas", "todo",
    "todos", "tu", "tua", "tuas", "tudo", "tém", "têm", "um", "uma", "umas", "uns", "vai", "você", "vocês",
    "vos", "à", "às", "é",
];

/// Spanish.
#[rustfmt::skip]
pub(super) static SPANISH: &[&str] = &[
    "a", "acá", "ahora", "ahí", "al", "algo", "alguien", "alguna", "algunas", "alguno", "algunos", "algún",
    "allá", "allí", "ambos", "ante", "antes", "aquel", "aquella", "aquellas", "aquello", "aquellos", "aquí",
    "así", "aun", "aunque", "aún", "bajo", "bastante", "bien", "cabe", "cada", "casi", "cierta", "ciertas",
    "cierto", "ciertos", "como", "con", "conmigo", "contigo", "contra", "cual", "cuales", "cualquier",
    "cuando", "cuanto", "cuya", "cuyas", "cuyo", "cuyos", "cuál", "cuándo", "cuánto", "cómo", "de", "debe",
    "deben", "del", "demás", "dentro", "desde", "después", "donde", "dos", "durante", "dónde", "e", "el",
    "ella", "ellas", "ello", "ellos", "en", "encima", "entonces", "entre", "era", "eran", "eras", "eres",
    "es", "esa", "esas", "ese", "eso", "esos", "esta", "estaba", "estaban", "estado", "estamos", "estar",
    "estas", "este", "esto", "estos", "estoy", "está", "están", "fin", "fue", "fueron", "fui", "ha",
    "haber", "había", "habían", "hace", "hacen", "hacer", "hacia", "han", "has", "hasta", "hay", "he",
    "incluso", "la", "las", "le", "les", "lo", "los", "luego", "mas", "me", "menos", "mi", "mientras",
    "mis", "misma", "mismas", "mismo", "mismos", "mucha", "muchas", "mucho", "muchos", "muy", "más", "mí",
    "mía", "mías", "mío", "míos", "nada", "nadie", "ni", "ninguna", "ninguno", "ningún", "no", "nos",
    "nosotras", "nosotros", "nuestra", "nuestras", "nuestro", "nuestros", "nunca", "o", "os", "otra",
    "otras", "otro", "otros", "para", "pero", "poca", "pocas", "poco", "pocos", "podía", "por", "porque",
    "puede", "pueden", "pues", "que", "quien", "quienes", "quién", "qué", "se", "sea", "sean", "según",
    "ser", "será", "si", "sido", "siempre", "siendo", "sin", "sino", "so", "sobre", "sois", "solamente",
    "solo", "somos", "son", "soy", "su", "sus", "suya", "suyas", "suyo", "suyos", "sí", "sólo", "tal",
    "tales", "también", "tampoco", "tan", "tanta", "tanto", "te", "tener", "tenía", "ti", "tiene", "tienen",
    "toda", "todas", "todavía", "todo", "todos", "tras", "tu", "tus", "tuya", "tuyo", "tú", "un", "una",
    "unas", "uno", "unos", "usted", "ustedes", "va", "van", "varias", "varios", "vosotras", "vosotros",
    "vuestra", "vuestro", "y", "ya", "yo", "él",
];
