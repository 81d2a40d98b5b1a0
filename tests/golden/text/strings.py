"""The 2,000 strings of the tokenizer's golden test: written for it, then mixed by a seeded generator."""
import random
import unicodedata

SENTENCES = """
The quick brown fox jumps over the lazy dog, doesn't it?
A small red fire engine with a white ladder on top.
Le cœur déçu mais l'âme plutôt naïve, Louÿs rêva de crapaüter en canoë.
Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.
El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia y frío; ¡añoraba a su querido cachorro!
Um pequeno jabuti xereta viu dez cegonhas felizes à beira-mar, não é?
Quel vituperabile xenofobo zelante assaggia il whisky ed esclama: alleluja!
Pchnąć w tę łódź jeża lub ośm skrzyń fig.
Příliš žluťoučký kůň úpěl ďábelské ódy.
Árvíztűrő tükörfúrógép, jó foxim és don Quijote.
Muzicologă în bej vând whisky și tequila, preț fix.
Flygande bäckasiner söka hwila på mjuka tuvor.
Kæmi ný öxi hér, ykist þjófum nú bæði víl og ádrepa.
Pijamalı hasta yağız şoföre çabucak güvendi; ışık İSTANBUL'da söndü.
Съешь же ещё этих мягких французских булок, да выпей чаю.
Жебракують філософи при ґанку церкви в Гадячі, ще й шатро їхнє п'яне знаємо.
Под южно дърво, цъфтящо в синьо, бягаше малко пухкаво зайче.
Љубазни фењерџија чађавог лица хоће да ми покаже штос.
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία· τὸ πνεῦμα, ᾧ ἅπαξ.
Բել դղյակի ձախ ժամն օֆ ազգությանը ցպահանջ չճշտած վնաս էր եւ փառք։
ქართული ენა: ძველი და ლამაზი ანბანი, ასე არ არის?
עטלף אבק נס דרך מזגן שהתפוצץ כי חם; שָׁלוֹם עֲלֵיכֶם.
نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر، بِسْمِ ٱللَّٰهِ.
بر این اساس می‌توان گفت که کتاب‌ها و نوشته‌ها مهم‌اند؛ عدد ۱۲۳۴۵ است.
ٹھنڈ میں، ایک قحط زدہ گاؤں سے گذرتے وقت ایک چڑچڑے مفلس شخص کو دیکھا۔
ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश हुआ, क्षत्रिय १२३।
বর্ষামুখর দিন শেষে, ঊর্দ্ধপানে চেয়ে যখন আষাঢ়ে গল্প শোনাতে বসে ওসমান ভুঁইঞা।
ਪੰਜਾਬੀ ਬੋਲੀ ਬਹੁਤ ਮਿੱਠੀ ਹੈ, ਹੈ ਨਾ?
ગુજરાતી ભાષા સરસ છે અને ૪૫૬ શબ્દો છે.
தமிழ் மொழி மிகவும் பழமையானது; யாமறிந்த மொழிகளிலே இனிதாவது எங்கும் காணோம்.
తెలుగు భాష చాలా తీయనిది, కదా?
ಕನ್ನಡ ನಾಡು ನುಡಿ ಬಹಳ ಸುಂದರವಾಗಿದೆ.
അജവും ആനയും ഐരാവതവും ഗരുഡനും കഠോര സ്വരം പൊഴിക്കെ, മലയാളം ൧൨൩.
සිංහල භාෂාව ශ්‍රී ලංකාවේ භාවිතා වේ.
เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓๔
ພາສາລາວ ເປັນພາສາທີ່ມ່ວນ ແລະ ງ່າຍ.
သီဟိုဠ်မှ ဉာဏ်ကြီးရှင်သည် အာယုဝဍ္ဎနဆေးညွှန်းစာကို ဇလွန်ဈေးဘေး။
ភាសាខ្មែរ មានអក្សរច្រើន ជាង ៣៣ តួ។
བོད་སྐད་ནི་མཛེས་པོ་ཡིན།
ለሰው ሞት አነሰው፤ አማርኛ ቋንቋ፡፡
天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。
视觉语言模型可以看图说话，也能回答问题：图里有几只猫？三只！
いろはにほへと ちりぬるを。ガギグゲゴ、ﾊﾝｶｸｶﾅ、東京タワー３３３ｍ。
키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. 각각 값 갂
Trăm năm trong cõi người ta, chữ tài chữ mệnh khéo là ghét nhau.
Ohun tí ó dára jù lọ ni ẹ̀kọ́; ọmọ náà ń kọ́ ìwé.
Монгол хэл бол сайхан хэл. ᠮᠣᠩᠭᠣᠯ ᠪᠢᠴᠢᠭ
ᚠᛇᚻ᛫ᛒᛦᚦ᛫ᚠᚱᚩᚠᚢᚱ᛫ᚠᛁᚱᚪ᛫ᚷᛖᚻᚹᛦᛚᚳᚢᛗ ꓡꓲꓢꓴ ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᐃᓄᒃᑎᑐᑦ ߒߞߏ 𐍀𐌰𐌿 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟘𝟙𝟚
""".strip().split("\n")

CODE = """
for (std::size_t i = 0; i < n; ++i) { sum += x[i] * y[i]; }  // dot product
def f(x, *, y=None):\\n    \"\"\"Docs.\"\"\"\\n    return {k: v**2 for k, v in x.items() if v != 0}\\n\\n\\n
#include <vector>\\n#define MAX(a,b) ((a)>(b)?(a):(b))\\nint main(){return 0;}\\n
SELECT COUNT(*) AS n, name FROM users WHERE id >= 10 AND email LIKE '%@example.com' GROUP BY 2;
<div class="row" id='x1'><a href="https://example.com/a?b=c&d=%20e#f">link</a></div>
\\tif err != nil {\\n\\t\\treturn fmt.Errorf("read %q: %w", path, err)\\n\\t}\\n
{"a": [1, 2.5e-3, null, true], "b\\\\u00e9": {"c": "\\\\n"}}
git commit -m "fix: don't crash" && git push --force-with-lease origin HEAD:main || echo $?
let x: Vec<&'static str> = vec!["a", "b"]; println!("{:?}", x.iter().map(|s| s.len()).sum::<usize>());
$$\\\\int_0^\\\\infty e^{-x^2}\\\\,dx = \\\\frac{\\\\sqrt{\\\\pi}}{2}$$ and x_{i+1} := \\\\alpha^\\\\top \\\\beta
""".strip().split("\n")

EMOJI = ("😀 😂🤣 ❤️ ❤ 👍🏽 👩🏿‍🚀 👨‍👩‍👧‍👦 🏳️‍🌈 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🇩🇪🇯🇵 🇦 1️⃣ #️⃣ ☺︎ ☕ ⌚️ 🫠 🧑‍🤝‍🧑 🤷🏻‍♀️ 🥲 ✅ ➡️ ™ © 🀄 🃏 🅰️ 🧿 🪿 🫨").split(" ")
SPACES = [" ", "  ", "   ", "\t", "\t\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\n  \n   ", "\v", "\f", "\x85", "\u00a0", " \u00a0", "\u1680", "\u2003",
          "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u3000\u3000 ", "\u200b", "\ufeff", " " * 17, "\t \t ", "\r\r\n", " \r\n \r\n "]
WORDS = ("I'm you're he'll we've they'd it's don't can't WE'RE I'LL 'tis 'Twas o'clock rock'n'roll d'être 'S 'LL 'Ve 're' y'all'd've ’s it’s ' '' ''s 's's "
         "'\u017f 'd1 'm- GPT-4 x86_64 3.14159 1,000,000 1e-10 0xDEADBEEF 2024-12-31T23:59:59Z 192.168.0.1 ½ ² ⅷ ① 一二三 ٣٤٥ ४५ 12345678901234567890 v2.0.1-rc3 C++20 A/B "
         "foo_bar fooBar FOOBAR ... --- *** !!! ?! :-) ;) $5.00 €99 £1 ¥100 50% a@b.co #tag @me ~/path C:\\dir\\file \\n \\\\ `code` “quoted” «guillemets» „tief“ – — … • † №5 "
         "antidisestablishmentarianism Donaudampfschifffahrtsgesellschaft honorificabilitudinitatibus aaaaaaaaaaaaaaaaaaaaaaaa zzzzzzzz lololololol").split(" ")
MARKS = ["e\u0301", "E\u0301\u0323", "a\u030a", "\u212b", "\u1e9b\u0323", "o\u031b\u0309", "\u0344", "\u1100\u1161\u11a8", "\u0915\u093c", "\u0958", "\u2126", "\uf900",
         "q\u0307\u0323", "n\u0303", "\u05d0\u05bc\u05b8", "x" + "\u0301" * 5, "\u0301lead", "Z\u0351\u036b\u0343A\u0321\u0489", "\u0627\u0653", "\u0b47\u0b56", "\u09c7\u09be",
         "a\u0323\u0301\u0315", "\u3099か\u3099", "は\u309a", "ﬁ ﬃ ﬅ", "\u0340\u0341", "\U0001d15e", "\U000110a9\U000110ba", "a\u08d3\u0301", "a\u0301\u1df6\u0323"]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>", "<|video_pad|>", "<tool_call>", "</tool_call>",
            "<|fim_prefix|>", "<|box_start|>", "<|im_start|", "<|image_pad", "|>", "<|", "<", "<|im_end|><|im_end|>", "<|IM_START|>", "<| im_end |>", "<|repo_name|>"]
CONTROL = ["\x00", "\x01", "\x07", "\x08", "\x1b[31m", "\x1f", "\x7f", "\x80", "\x9f", "\xad", "\u200c", "\u200d", "\u200e", "\u202e", "\u2066", "\ufffd", "\ufffe", "\ue000",
           "\U000e0001", "\U0010ffff", "\u061c", "\u180e", "\ufff9"]


def any_character(rng):
    """A code point of Unicode 16 or none, from every plane that has some."""
    while True:
        first, last = rng.choice([(0x20, 0x7E), (0xA0, 0x24F), (0x250, 0x52F), (0x530, 0x10FF), (0x1100, 0x1FFF), (0x2000, 0x2BFF), (0x2C00, 0xABFF),
                                  (0xAC00, 0xD7A3), (0xF900, 0xFFFD), (0x10000, 0x16FFF), (0x17000, 0x1FFFF), (0x20000, 0x323AF)])
        code = rng.randint(first, last)
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def piece(rng):
    kind = rng.randrange(10)
    if kind < 3:
        sentence = rng.choice(SENTENCES)
        start = rng.randrange(len(sentence))
        return sentence[start:start + rng.randint(1, 18)]
    if kind == 3:
        return rng.choice(EMOJI) * rng.randint(1, 2)
    if kind == 4:
        return rng.choice(MARKS)
    if kind == 5:
        return rng.choice(SPECIALS)
    if kind == 6:
        return rng.choice(CONTROL)
    if kind == 7:
        return "".join(any_character(rng) for _ in range(rng.randint(1, 4)))
    return rng.choice(WORDS)


def strings(count):
    rng = random.Random(20250)
    out = [""] + SENTENCES + [line.replace("\\n", "\n").replace("\\t", "\t") for line in CODE]
    for group in (EMOJI, SPACES, WORDS, MARKS, SPECIALS, CONTROL):
        out += group
    out += ["a" + space + "b" for space in SPACES] + [space + "!" for space in SPACES] + ["7" + space for space in SPACES]
    out += [unicodedata.normalize("NFD", sentence) for sentence in SENTENCES if unicodedata.normalize("NFD", sentence) != sentence]
    out += [chr(code) for code in range(256)]
    seen = dict.fromkeys(out)
    while len(seen) < count:
        pieces = [piece(rng) for _ in range(rng.randint(2, 6))]
        glue = [rng.choice(["", "", " ", rng.choice(SPACES)]) for _ in pieces]
        seen.setdefault("".join(p + g for p, g in zip(pieces, glue)))
    return list(seen)[:count]
